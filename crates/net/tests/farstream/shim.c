/* Loaded in front of Farstream 0.2.9, which was not tried with TFRC since it moved to GStreamer 1.x. Mends from
 * outside what keeps its TFRC from working at all with GStreamer 1.22:
 *  - it intersects capabilities with a filter that may be NULL, and then cannot insert its stamps;
 *  - it asks for the size of a packet that it has just let go (NULL), and so counts no byte received. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

extern void *gst_mini_object_ref(void *object);

void *gst_caps_intersect(void *a, void *b) {
  static void *(*real)(void *, void *);
  if (!real) real = (void *(*)(void *, void *))dlsym(RTLD_NEXT, "gst_caps_intersect");
  return b ? real(a, b) : gst_mini_object_ref(a);
}

static __thread size_t size_of_the_last;

size_t gst_buffer_get_size(void *buffer) {
  static size_t (*real)(void *);
  if (!real) real = (size_t(*)(void *))dlsym(RTLD_NEXT, "gst_buffer_get_size");
  return buffer ? real(buffer) : size_of_the_last;
}

int gst_rtp_buffer_map(void *buffer, int flags, void *rtp) {
  static int (*real)(void *, int, void *);
  if (!real) real = (int (*)(void *, int, void *))dlsym(RTLD_NEXT, "gst_rtp_buffer_map");
  size_of_the_last = gst_buffer_get_size(buffer);
  return real(buffer, flags, rtp);
}
