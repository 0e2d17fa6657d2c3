// BLAS through the function pointers that SciPy exports, so that nothing is linked.
//
// Fortran conventions: column-major, every argument a pointer. `load` is called once at import with the
// addresses from scipy.linalg.cython_blas.__pyx_capi__.
#pragma once

namespace sixfold::blas {

using Syrk = void(char* uplo, char* trans, int* n, int* k, double* alpha, double* a, int* lda, double* beta,
                  double* c, int* ldc);
using Gemm = void(char* transa, char* transb, int* m, int* n, int* k, double* alpha, double* a, int* lda,
                  double* b, int* ldb, double* beta, double* c, int* ldc);
using SetThreads = void(int);
using GetThreads = int();

extern Syrk* dsyrk;
extern Gemm* dgemm;

// `library` is the file of scipy.linalg.cython_blas: OpenBLAS, on which it depends, is asked for its
// thread controls through it. Without them BLAS keeps its own threads.
void load(void* dsyrk_pointer, void* dgemm_pointer, const char* library);

// BLAS single-threaded while this lives: for calls from inside our own parallel loops.
class SingleThreaded {
 public:
  SingleThreaded();
  ~SingleThreaded();
  SingleThreaded(const SingleThreaded&) = delete;
  SingleThreaded& operator=(const SingleThreaded&) = delete;

 private:
  int before_ = 0;
};

// Sets the threads BLAS uses and returns what it used before; 0, in or out, where that is unknown.
int swap_threads(int count);

// True where BLAS lets us set its threads, so that calling it from several threads at once is safe and fast.
bool can_limit_threads();

}  // namespace sixfold::blas

namespace sixfold {

// Threads for our own loops: OpenMP's setting (OMP_NUM_THREADS, threadpoolctl), one in a forked child,
// whose copy of the OpenMP pool has no threads behind it.
int threads();

}  // namespace sixfold
