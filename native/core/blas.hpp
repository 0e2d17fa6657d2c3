// BLAS through the function pointers that SciPy exports, so that nothing is linked.
//
// Fortran conventions: column-major, every argument a pointer. `load` is called once at import with the
// addresses from scipy.linalg.cython_blas.__pyx_capi__.
#pragma once

#include <string>
#include <vector>

namespace sixfold::blas {

using Gemm = void(char* transa, char* transb, int* m, int* n, int* k, double* alpha, double* a, int* lda,
                  double* b, int* ldb, double* beta, double* c, int* ldc);

extern Gemm* dgemm;

// `modules` are files of extension modules that call BLAS, SciPy's first: OpenBLAS, of which NumPy and SciPy
// each have a copy of their own, is asked for its thread controls through them. A BLAS without such controls
// keeps its own threads.
void load(void* dgemm_pointer, const std::vector<std::string>& modules);

// Between the two, every BLAS that can be told to has one thread: the limit is the process's, whichever
// thread sets it. They may be nested and used by several threads at once; the last one out restores what the
// first one found.
void begin_single_thread();
void end_single_thread();

// BLAS single-threaded while this lives: for calls from inside our own parallel loops.
class SingleThreaded {
 public:
  SingleThreaded() { begin_single_thread(); }
  ~SingleThreaded() { end_single_thread(); }
  SingleThreaded(const SingleThreaded&) = delete;
  SingleThreaded& operator=(const SingleThreaded&) = delete;
};

// The threads that each BLAS has now.
std::vector<int> threads();

// True where the BLAS of `dgemm` can be told, so that calling it from several threads at once is safe and
// fast.
bool can_limit_threads();

}  // namespace sixfold::blas
