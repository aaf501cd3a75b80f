#include "plot/png.hpp"

#include "quoin/error.hpp"

#ifdef QUOIN_HAVE_PNG
#include <cairo.h>
#include <librsvg/rsvg.h>

#include <cmath>
#include <memory>
#endif

namespace quoin::plot {

#ifdef QUOIN_HAVE_PNG

namespace {

struct Release {
    void operator()(RsvgHandle* handle) const { g_object_unref(handle); }
    void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
    void operator()(cairo_t* context) const { cairo_destroy(context); }
    void operator()(GError* error) const { g_error_free(error); }
};
template <class T>
using Owner = std::unique_ptr<T, Release>;

[[noreturn]] void refuse(const std::string& why) { throw InvalidArgument("the figure cannot be drawn as PNG: " + why); }

void require(bool fine, GError* error) {
    const Owner<GError> owner(error);
    if (!fine) refuse(error ? error->message : "librsvg does not say why");
}

cairo_status_t append(void* to, const unsigned char* bytes, unsigned int count) {
    static_cast<std::string*>(to)->append(reinterpret_cast<const char*>(bytes), count);
    return CAIRO_STATUS_SUCCESS;
}

}  // namespace

bool has_png() { return true; }

std::string png(const std::string& svg, double scale) {
    GError* error = nullptr;
    const Owner<RsvgHandle> handle(
        rsvg_handle_new_from_data(reinterpret_cast<const guint8*>(svg.data()), svg.size(), &error));
    require(handle != nullptr, error);
    double width = 0, height = 0;
    require(rsvg_handle_get_intrinsic_size_in_pixels(handle.get(), &width, &height), nullptr);
    const RsvgRectangle page{0, 0, scale * width, scale * height};
    const Owner<cairo_surface_t> surface(cairo_image_surface_create(
        CAIRO_FORMAT_RGB24, static_cast<int>(std::ceil(page.width)), static_cast<int>(std::ceil(page.height))));
    const Owner<cairo_t> context(cairo_create(surface.get()));
    require(rsvg_handle_render_document(handle.get(), context.get(), &page, &error), error);
    std::string file;
    const cairo_status_t status = cairo_surface_write_to_png_stream(surface.get(), append, &file);
    if (status != CAIRO_STATUS_SUCCESS) refuse(cairo_status_to_string(status));
    return file;
}

#else

bool has_png() { return false; }

std::string png(const std::string&, double) {
    throw InvalidArgument("the figure cannot be drawn as PNG: this quoin was built without librsvg");
}

#endif

}  // namespace quoin::plot
