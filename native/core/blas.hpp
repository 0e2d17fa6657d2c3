// BLAS through the function pointers that SciPy exports, so that nothing is linked.
//
// Fortran conventions: column-major, every argument a pointer. `load` is called once at import with the
// addresses from scipy.linalg.cython_blas.__pyx_capi__.
#pragma once

namespace sixfold::blas {

using Gemm = void(char* transa, char* transb, int* m, int* n, int* k, double* alpha, double* a, int* lda,
                  double* b, int* ldb, double* beta, double* c, int* ldc);
using SetThreads = void(int);
using GetThreads = int();

extern Gemm* dgemm;

// `library` is the file of scipy.linalg.cython_blas: OpenBLAS, on which it depends, is asked for its
// thread controls through it. Without them BLAS keeps its own threads.
void load(void* dgemm_pointer, const char* library);

// BLAS single-threaded while this lives: for calls from inside our own parallel loops.
class SingleThreaded {
 public:
  SingleThreaded();
  ~SingleThreaded();
  SingleThreaded(const SingleThreaded&) = delete;
  SingleThreaded& operator=(const SingleThreaded&) = delete;

 private:
  int before_;
};

// Sets the threads of BLAS and returns how many they were; 0 where BLAS has no such control.
int limit_threads(int most);

// True where BLAS lets us set its threads, so that calling it from several threads at once is safe and fast.
bool can_limit_threads();

}  // namespace sixfold::blas
