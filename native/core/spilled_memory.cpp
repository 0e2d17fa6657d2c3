#include "core/spilled_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <mutex>
#include <thread>

namespace sixfold::spilled {

namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(3);
constexpr int kPriority = -10;  // of the thread that looks, where that may be asked for: the others are busy
constexpr std::size_t kLeastDropped = std::size_t{64} << 20;  // pages of files that are worth letting go
constexpr std::size_t kKept = 6;                              // regions that were given up, for the next ones

struct Region {
  std::size_t bytes;
  int file;  // -1 where somebody else's
};

struct State {
  std::mutex lock;
  std::map<void*, Region> regions, unused;
  Limits limits;
  int depth = 0;
  std::size_t at_first = 0;  // pages of files at the beginning: mostly those of libraries
  std::thread watcher;
  std::condition_variable ended;
};

State& state() {
  static State* one = new State;  // never destroyed: arrays may outlive everything else
  return *one;
}

std::atomic<bool> active{false};
std::atomic<std::size_t> least{0};
std::atomic<std::size_t> regions_there{0};

// Bytes that the process holds, and those of them that are pages of files.
void resident(std::size_t& all, std::size_t& of_files) {
  all = of_files = 0;
  std::FILE* status = std::fopen("/proc/self/statm", "r");
  if (status == nullptr) return;
  unsigned long size = 0, held = 0, shared = 0;
  if (std::fscanf(status, "%lu %lu %lu", &size, &held, &shared) == 3) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    all = held * page;
    of_files = shared * page;
  }
  std::fclose(status);
}

void let_go(const std::map<void*, Region>& regions) {
  for (const auto& [address, region] : regions) madvise(address, region.bytes, MADV_DONTNEED);
}

// The lock is held.
void keep_within(State& all) {
  std::size_t held = 0, of_files = 0;
  resident(held, of_files);
  if (held <= all.limits.most || of_files < all.at_first + kLeastDropped) return;
  let_go(all.regions);
  let_go(all.unused);
}

void watch_over() {
#if defined(__linux__)
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kPriority);
#endif
  State& all = state();
  std::unique_lock<std::mutex> hold(all.lock);
  while (!all.ended.wait_for(hold, kBetweenLooks, [&] { return all.depth == 0; })) keep_within(all);
}

void release(void* address, const Region& region) {
  munmap(address, region.bytes);
  if (region.file >= 0) close(region.file);
}

// A file without a name: it is gone when it is closed, whatever happens.
int nameless(const std::string& folder) {
#if defined(O_TMPFILE)
  const int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0) return file;
#endif
  std::string name = folder + "/sixfold-XXXXXX";
  const int made = mkstemp(name.data());
  if (made >= 0) unlink(name.c_str());
  return made;
}

}  // namespace

bool begin(const Limits& limits) {
#if defined(__linux__)
  State& all = state();
  std::lock_guard<std::mutex> hold(all.lock);
  if (all.depth++ > 0) return true;
  all.limits = limits;
  std::size_t held = 0;
  resident(held, all.at_first);
  least = limits.least;
  active = true;
  all.watcher = std::thread(watch_over);
  return true;
#else
  (void)limits;
  return false;
#endif
}

void end() {
  State& all = state();
  std::thread watcher;
  {
    std::lock_guard<std::mutex> hold(all.lock);
    if (all.depth == 0 || --all.depth > 0) return;
    active = false;
    for (const auto& [address, region] : all.unused) release(address, region);
    all.unused.clear();
    watcher = std::move(all.watcher);
  }
  all.ended.notify_all();
  if (watcher.joinable()) watcher.join();
}

void look() {
  if (!active) return;
  State& all = state();
  std::lock_guard<std::mutex> hold(all.lock);
  keep_within(all);
}

void watch(void* address, std::size_t bytes) {
  State& all = state();
  std::lock_guard<std::mutex> hold(all.lock);
  all.regions[address] = {bytes, -1};
}

void forget(void* address) {
  State& all = state();
  std::lock_guard<std::mutex> hold(all.lock);
  all.regions.erase(address);
}

void* take(std::size_t bytes) {
  if (!active) return nullptr;
  State& all = state();
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  bytes = (bytes + page - 1) / page * page;
  {
    std::lock_guard<std::mutex> hold(all.lock);
    keep_within(all);  // on a busy machine the thread that looks may come late
    for (auto one = all.unused.begin(); one != all.unused.end(); ++one) {
      if (one->second.bytes < bytes || one->second.bytes > bytes + bytes / 4) continue;
      void* address = one->first;
      all.regions[address] = one->second;
      all.unused.erase(one);
      ++regions_there;
      return address;
    }
  }
  const int file = nameless(all.limits.folder);
  if (file < 0) return nullptr;
  // Space is asked for now: where none is left, writing to a mapped page would end the process.
  void* address = MAP_FAILED;
  if (posix_fallocate(file, 0, static_cast<off_t>(bytes)) == 0)
    address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (address == MAP_FAILED) {
    close(file);
    return nullptr;
  }
  std::lock_guard<std::mutex> hold(all.lock);
  all.regions[address] = {bytes, file};
  ++regions_there;
  return address;
}

bool give_up(void* address) {
  if (regions_there == 0) return false;
  State& all = state();
  std::lock_guard<std::mutex> hold(all.lock);
  const auto found = all.regions.find(address);
  if (found == all.regions.end() || found->second.file < 0) return false;
  const Region region = found->second;
  all.regions.erase(found);
  --regions_there;
  if (active && all.unused.size() < kKept)
    all.unused[address] = region;
  else
    release(address, region);
  return true;
}

std::size_t size_of(void* address) {
  if (regions_there == 0) return 0;
  State& all = state();
  std::lock_guard<std::mutex> hold(all.lock);
  const auto found = all.regions.find(address);
  return found == all.regions.end() || found->second.file < 0 ? 0 : found->second.bytes;
}

std::size_t held() {
  State& all = state();
  std::lock_guard<std::mutex> hold(all.lock);
  std::size_t sum = 0;
  for (const auto& [address, region] : all.regions)
    if (region.file >= 0) sum += region.bytes;
  return sum;
}

bool wanted(std::size_t bytes) { return active && bytes >= least; }

}  // namespace sixfold::spilled
