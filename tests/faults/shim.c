/* Preloaded into a process of the tests: makes the k-th call that changes files below a folder fail.

   FULL is a disk that is full from the k-th call on: half of what is written then still fits, and nothing afterwards;
   what is there can be synced and renamed.

   Counted are write, pwrite, writev, fsync, fdatasync, rename and renameat(2), mkdir(at), and opens that create, where
   the file lies below the folder that faults_arm was given; renames wherever they are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FAIL_EIO = 0, FAIL_ENOSPC = 1, SHORT = 2, KILL = 3, FULL = 4 };

static int armed, kind, at, count, hit;
static char below[4096];

void faults_arm(int at_call, int kind_of_fault, const char *folder) {
    at = at_call;
    kind = kind_of_fault;
    count = hit = 0;
    strncpy(below, folder, sizeof below - 1);
    armed = 1;
}

int faults_disarm(void) {
    armed = 0;
    return count;
}

int faults_hit(void) { return hit; }

static int is_below(const char *path) { return strncmp(path, below, strlen(below)) == 0; }

static int descriptor_is_below(int descriptor) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_below(path);
}

/* Whether this call is the one; a process that is to be killed does not come back. */
static int is_the_one(int needs_room) {
    int number = count++;
    if (kind == FULL ? number < at || !needs_room : number != at) return 0;
    hit = 1;
    if (kind == KILL) raise(SIGKILL);
    return 1;
}

/* Whether of what this call writes a part is written all the same. */
static int in_part(void) { return kind == SHORT || (kind == FULL && count - 1 == at); }

static int failed(void) {
    errno = kind == FAIL_ENOSPC || kind == FULL ? ENOSPC : EIO;
    return -1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int descriptor, const void *bytes, size_t size) {
    if (armed && descriptor_is_below(descriptor) && is_the_one(1)) {
        if (!in_part()) return failed();
        if (size > 1) size /= 2;
    }
    return REAL(write)(descriptor, bytes, size);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t size, off64_t offset) {
    if (armed && descriptor_is_below(descriptor) && is_the_one(1)) {
        if (!in_part()) return failed();
        if (size > 1) size /= 2;
    }
    return REAL(pwrite64)(descriptor, bytes, size, offset);
}

ssize_t writev(int descriptor, const struct iovec *parts, int n) {
    if (armed && descriptor_is_below(descriptor) && is_the_one(1)) {
        if (!in_part()) return failed();
        n = 1;
    }
    return REAL(writev)(descriptor, parts, n);
}

int fsync(int descriptor) {
    if (armed && descriptor_is_below(descriptor) && is_the_one(0) && kind != SHORT) return failed();
    return REAL(fsync)(descriptor);
}

int fdatasync(int descriptor) {
    if (armed && descriptor_is_below(descriptor) && is_the_one(0) && kind != SHORT) return failed();
    return REAL(fdatasync)(descriptor);
}

int rename(const char *from, const char *to) {
    if (armed && is_the_one(0) && kind != SHORT) return failed();
    return REAL(rename)(from, to);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    if (armed && is_the_one(0) && kind != SHORT) return failed();
    return REAL(renameat)(from_folder, from, to_folder, to);
}

int openat64(int folder, const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    int descriptor_below = path[0] == '/' || folder == AT_FDCWD ? is_below(path) : descriptor_is_below(folder);
    if (armed && (flags & O_CREAT) && descriptor_below && is_the_one(1) && kind != SHORT) return failed();
    return REAL(openat64)(folder, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    if (armed && (flags & O_CREAT) && is_below(path) && is_the_one(1) && kind != SHORT) return failed();
    return REAL(open64)(path, flags, mode);
}

int mkdirat(int folder, const char *path, mode_t mode) {
    if (armed && (path[0] == '/' ? is_below(path) : descriptor_is_below(folder)) && is_the_one(1) && kind != SHORT) return failed();
    return REAL(mkdirat)(folder, path, mode);
}

int mkdir(const char *path, mode_t mode) {
    if (armed && is_below(path) && is_the_one(1) && kind != SHORT) return failed();
    return REAL(mkdir)(path, mode);
}
