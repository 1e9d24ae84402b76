/**
 * The arithmetic of the runtime, compiled to WebAssembly by build_kernels.mjs.
 *
 * Tensors are row-major. Products of 8-bit integers are exact: how the processor multiplies them ("mode") changes the
 * speed, not the result. A matrix is packed once into blocks of 8 columns, so that a product reads memory in order.
 */

#include <stddef.h>
#include <stdint.h>
#include <wasm_simd128.h>

#define EXPORT(name) __attribute__((export_name(#name)))
#define INLINE static inline __attribute__((always_inline))
#define COLUMNS 8

/** How rows are stored: WIDE multiplies 16-bit integers, and the others are for the dot product of relaxed SIMD. */
enum mode { WIDE, UNSIGNED, SIGNED };

void *memset(void *target, int value, size_t bytes) { return __builtin_memset(target, value, bytes); }
void *memcpy(void *target, const void *source, size_t bytes) { return __builtin_memcpy(target, source, bytes); }

/* ---- Quantized products ---- */

#ifdef RELAXED
INLINE v128_t dot(v128_t weights, v128_t values, v128_t sum) {
  return (v128_t)__builtin_wasm_relaxed_dot_i8x16_i7x16_add_s_i32x4((__i8x16)weights, (__i8x16)values, (__i32x4)sum);
}
/** Bytes of a value in a row, and values per dot product. */
#define VALUE_BYTES 1
#define GROUP 4
INLINE v128_t load_weights(const int8_t *packed) { return wasm_v128_load(packed); }
#define WEIGHTS_BYTES 16
#else
INLINE v128_t dot(v128_t weights, v128_t values, v128_t sum) { return wasm_i32x4_add(sum, wasm_i32x4_dot_i16x8(weights, values)); }
#define VALUE_BYTES 2
#define GROUP 2
INLINE v128_t load_weights(const int8_t *packed) { return wasm_i16x8_load8x8(packed); }
#define WEIGHTS_BYTES 8
#endif

EXPORT(value_bytes) int value_bytes(void) { return VALUE_BYTES; }

/** Which mode the dot product of this processor needs: the specification leaves open how it treats the eighth bit. */
EXPORT(detect_mode) int detect_mode(void) {
#ifdef RELAXED
  // Read at run time, since the compiler must not compute the products itself.
  volatile int8_t low = -127, high = 127;
  volatile uint8_t value = 255;
  v128_t largest = dot(wasm_i8x16_splat(high), wasm_i8x16_splat((int8_t)value), wasm_i32x4_splat(0));
  v128_t lowest = dot(wasm_i8x16_splat(low), wasm_i8x16_splat((int8_t)value), wasm_i32x4_splat(0));
  int32_t first = wasm_i32x4_extract_lane(largest, 0), second = wasm_i32x4_extract_lane(lowest, 0);
  if (first == 4 * 127 * 255 && second == -4 * 127 * 255) return UNSIGNED;
  if (first == -4 * 127 && second == 4 * 127) return SIGNED;
  return -1; // sums are saturated, or the eighth bit is lost
#else
  return WIDE;
#endif
}

INLINE float largest_magnitude(const float *x, int length) {
  v128_t largest = wasm_f32x4_splat(0);
  int i = 0;
  for (; i + 4 <= length; i += 4) largest = wasm_f32x4_pmax(largest, wasm_f32x4_abs(wasm_v128_load(x + i)));
  float result = 0;
  for (int lane = 0; lane < 4; lane++) result = ((float *)&largest)[lane] > result ? ((float *)&largest)[lane] : result;
  for (; i < length; i++) result = __builtin_fabsf(x[i]) > result ? __builtin_fabsf(x[i]) : result;
  return result;
}

/** Quantize each row (length) to -127..127 with its own scale; `padded` values per row are stored. */
EXPORT(quantize_rows) void quantize_rows(const float *x, int rows, int length, int padded, int8_t *quantized, float *scales, int mode) {
  for (int row = 0; row < rows; row++, x += length, quantized += padded * VALUE_BYTES) {
    float largest = largest_magnitude(x, length), factor = largest > 0 ? 127.0f / largest : 0;
    scales[row] = largest / 127.0f;
    int i = 0;
    for (; i + 8 <= length; i += 8) {
      v128_t low = wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_nearest(wasm_f32x4_mul(wasm_v128_load(x + i), wasm_f32x4_splat(factor))));
      v128_t high = wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_nearest(wasm_f32x4_mul(wasm_v128_load(x + i + 4), wasm_f32x4_splat(factor))));
      v128_t narrow = wasm_i16x8_narrow_i32x4(low, high);
#ifdef RELAXED
      v128_t bytes = wasm_i8x16_narrow_i16x8(narrow, narrow);
      if (mode == UNSIGNED) bytes = wasm_v128_xor(bytes, wasm_i8x16_splat((int8_t)0x80));
      wasm_v128_store64_lane(quantized + i, bytes, 0);
#else
      wasm_v128_store(quantized + 2 * i, narrow);
#endif
    }
    for (; i < padded; i++) {
      int value = i < length ? (int)__builtin_rintf(x[i] * factor) : 0;
#ifdef RELAXED
      quantized[i] = (int8_t)(mode == UNSIGNED ? value ^ 0x80 : value);
#else
      ((int16_t *)quantized)[i] = (int16_t)value;
#endif
    }
  }
}

/** Pack a matrix (length, columns) of 8-bit weights; `sums` gets what a product starts with in each column. */
EXPORT(pack_weights) void pack_weights(const int8_t *weights, int length, int columns, int padded, int8_t *packed, int32_t *sums, int mode) {
  int blocks = (columns + COLUMNS - 1) / COLUMNS;
  memset(sums, 0, (size_t)blocks * COLUMNS * sizeof *sums);
  for (int block = 0; block < blocks; block++)
    for (int group = 0; group < padded; group += GROUP)
      for (int column = block * COLUMNS; column < (block + 1) * COLUMNS; column++)
        for (int i = group; i < group + GROUP; i++) {
          int8_t weight = i < length && column < columns ? weights[(size_t)i * columns + column] : 0;
          *packed++ = weight;
          if (mode == UNSIGNED) sums[column] -= 128 * weight; // each value is stored 128 too high
        }
}

typedef struct {
  const int8_t *packed;
  const float *scales, *bias;
  const int32_t *sums;
  int padded, columns, has_relu;
} Weights;

INLINE void store_row(v128_t low, v128_t high, float scale, const Weights *w, int column, float *out) {
  v128_t parts[2] = {low, high};
  for (int part = 0; part < 2; part++) {
    int first = column + 4 * part;
    v128_t factor = wasm_f32x4_mul(wasm_f32x4_splat(scale), wasm_v128_load(w->scales + first));
    v128_t sum = wasm_i32x4_add(parts[part], wasm_v128_load(w->sums + first));
    v128_t result = wasm_f32x4_add(wasm_f32x4_mul(wasm_f32x4_convert_i32x4(sum), factor), wasm_v128_load(w->bias + first));
    if (w->has_relu) result = wasm_f32x4_max(wasm_f32x4_splat(0), result);
    if (first + 4 <= w->columns) wasm_v128_store(out + first, result);
    else for (int lane = 0; first + lane < w->columns; lane++) out[first + lane] = ((float *)&result)[lane];
  }
}

/** Multiply ROWS rows with one block of columns; STEPS sums per result hide the latency of an addition. */
#define MULTIPLY(ROWS, STEPS)                                                                                          \
  static __attribute__((noinline)) void multiply_##ROWS(const int8_t *rows, const float *scales, const Weights *w, int column, const int8_t *packed, float *out) { \
    v128_t sums[STEPS][ROWS][2];                                                                                       \
    _Pragma("unroll") for (int step = 0; step < STEPS; step++)                                                         \
      _Pragma("unroll") for (int row = 0; row < ROWS; row++) sums[step][row][0] = sums[step][row][1] = wasm_i32x4_splat(0); \
    int stride = w->padded * VALUE_BYTES, i = 0;                                                                       \
    for (; i + STEPS * GROUP <= w->padded; i += STEPS * GROUP) {                                                       \
      _Pragma("unroll") for (int step = 0; step < STEPS; step++, packed += 2 * WEIGHTS_BYTES) {                        \
        v128_t first = load_weights(packed), second = load_weights(packed + WEIGHTS_BYTES);                            \
        _Pragma("unroll") for (int row = 0; row < ROWS; row++) {                                                       \
          v128_t values = wasm_v128_load32_splat(rows + row * stride + (i + step * GROUP) * VALUE_BYTES);              \
          sums[step][row][0] = dot(first, values, sums[step][row][0]);                                                 \
          sums[step][row][1] = dot(second, values, sums[step][row][1]);                                                \
        }                                                                                                              \
      }                                                                                                                \
    }                                                                                                                  \
    for (; i < w->padded; i += GROUP, packed += 2 * WEIGHTS_BYTES) {                                                   \
      v128_t first = load_weights(packed), second = load_weights(packed + WEIGHTS_BYTES);                              \
      _Pragma("unroll") for (int row = 0; row < ROWS; row++) {                                                         \
        v128_t values = wasm_v128_load32_splat(rows + row * stride + i * VALUE_BYTES);                                 \
        sums[0][row][0] = dot(first, values, sums[0][row][0]);                                                         \
        sums[0][row][1] = dot(second, values, sums[0][row][1]);                                                        \
      }                                                                                                                \
    }                                                                                                                  \
    _Pragma("unroll") for (int row = 0; row < ROWS; row++) {                                                           \
      v128_t low = sums[0][row][0], high = sums[0][row][1];                                                            \
      _Pragma("unroll") for (int step = 1; step < STEPS; step++) {                                                     \
        low = wasm_i32x4_add(low, sums[step][row][0]);                                                                 \
        high = wasm_i32x4_add(high, sums[step][row][1]);                                                               \
      }                                                                                                                \
      store_row(low, high, scales[row], w, column, out + (size_t)row * w->columns);                                    \
    }                                                                                                                  \
  }

MULTIPLY(1, 4)
MULTIPLY(2, 2)
MULTIPLY(4, 1)

/** Multiply quantized rows with packed weights, and add a bias; `scales`, `sums` and `bias` are padded to whole blocks. */
EXPORT(multiply_quantized) void multiply_quantized(const int8_t *rows, const float *row_scales, int num_rows, int padded, const int8_t *packed, const float *scales,
                                                   const int32_t *sums, const float *bias, float *out, int columns, int has_relu) {
  Weights w = {packed, scales, bias, sums, padded, columns, has_relu};
  size_t stride = (size_t)padded * VALUE_BYTES;
  for (int column = 0; column < columns; column += COLUMNS) {
    const int8_t *block = packed + (size_t)column * padded;
    int row = 0;
    for (; row + 4 <= num_rows; row += 4) multiply_4(rows + row * stride, row_scales + row, &w, column, block, out + (size_t)row * columns);
    if (row + 2 <= num_rows) {
      multiply_2(rows + row * stride, row_scales + row, &w, column, block, out + (size_t)row * columns);
      row += 2;
    }
    if (row < num_rows) multiply_1(rows + row * stride, row_scales + row, &w, column, block, out + (size_t)row * columns);
  }
}

/* ---- Products of floats ---- */

/** Pack a matrix (length, columns) into blocks of 8 columns. */
EXPORT(pack_floats) void pack_floats(const float *weights, int length, int columns, float *packed) {
  for (int block = 0; block < columns; block += COLUMNS)
    for (int i = 0; i < length; i++)
      for (int column = block; column < block + COLUMNS; column++) *packed++ = column < columns ? weights[(size_t)i * columns + column] : 0;
}

#define MULTIPLY_FLOATS(ROWS)                                                                                          \
  INLINE void multiply_floats_##ROWS(const float *x, const float *packed, const float *bias, float *out, int length, int columns, int column, int has_relu) { \
    v128_t sums[ROWS][2];                                                                                              \
    _Pragma("unroll") for (int row = 0; row < ROWS; row++) sums[row][0] = sums[row][1] = wasm_f32x4_splat(0);          \
    for (int i = 0; i < length; i++, packed += COLUMNS) {                                                              \
      v128_t first = wasm_v128_load(packed), second = wasm_v128_load(packed + 4);                                      \
      _Pragma("unroll") for (int row = 0; row < ROWS; row++) {                                                         \
        v128_t value = wasm_v128_load32_splat(x + row * length + i);                                                   \
        sums[row][0] = wasm_f32x4_add(sums[row][0], wasm_f32x4_mul(first, value));                                     \
        sums[row][1] = wasm_f32x4_add(sums[row][1], wasm_f32x4_mul(second, value));                                    \
      }                                                                                                                \
    }                                                                                                                  \
    _Pragma("unroll") for (int row = 0; row < ROWS; row++)                                                             \
      for (int lane = 0; lane < COLUMNS && column + lane < columns; lane++) {                                          \
        float result = ((float *)sums[row])[lane] + bias[column + lane];                                               \
        out[row * columns + column + lane] = has_relu && result < 0 ? 0 : result;                                      \
      }                                                                                                                \
  }

MULTIPLY_FLOATS(1)
MULTIPLY_FLOATS(4)

/** Multiply rows (num_rows, length) with a packed matrix, and add a bias that is padded to whole blocks. */
EXPORT(multiply_floats) void multiply_floats(const float *x, int num_rows, int length, const float *packed, const float *bias, float *out, int columns, int has_relu) {
  for (int column = 0; column < columns; column += COLUMNS, packed += (size_t)COLUMNS * length) {
    int row = 0;
    for (; row + 4 <= num_rows; row += 4) multiply_floats_4(x + row * length, packed, bias, out + (size_t)row * columns, length, columns, column, has_relu);
    for (; row < num_rows; row++) multiply_floats_1(x + row * length, packed, bias, out + (size_t)row * columns, length, columns, column, has_relu);
  }
}

/* ---- Functions of one number ---- */

/** e^x by the polynomial of Cephes, with a relative error of 2e-7; 0 below -87. */
INLINE v128_t exponential(v128_t x) {
  v128_t is_tiny = wasm_f32x4_lt(x, wasm_f32x4_splat(-87.3f));
  x = wasm_f32x4_pmin(wasm_f32x4_pmax(x, wasm_f32x4_splat(-87.3f)), wasm_f32x4_splat(88.3f));
  v128_t power = wasm_f32x4_nearest(wasm_f32x4_mul(x, wasm_f32x4_splat(1.44269504f)));
  x = wasm_f32x4_sub(x, wasm_f32x4_mul(power, wasm_f32x4_splat(0.693359375f)));
  x = wasm_f32x4_sub(x, wasm_f32x4_mul(power, wasm_f32x4_splat(-2.12194440e-4f)));
  static const float factors[] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 0.5f, 1, 1};
  v128_t result = wasm_f32x4_splat(factors[0]);
#pragma unroll
  for (int i = 1; i < 8; i++) result = wasm_f32x4_add(wasm_f32x4_mul(result, x), wasm_f32x4_splat(factors[i]));
  v128_t scale = wasm_i32x4_shl(wasm_i32x4_add(wasm_i32x4_trunc_sat_f32x4(power), wasm_i32x4_splat(127)), 23);
  return wasm_v128_andnot(wasm_f32x4_mul(result, scale), is_tiny);
}

INLINE float exponential_1(float x) { return wasm_f32x4_extract_lane(exponential(wasm_f32x4_splat(x)), 0); }

/** The error function: the quotient of polynomials that Eigen has for single precision. */
INLINE v128_t error_function(v128_t x) {
  x = wasm_f32x4_pmin(wasm_f32x4_pmax(x, wasm_f32x4_splat(-4)), wasm_f32x4_splat(4));
  v128_t square = wasm_f32x4_mul(x, x);
  static const float above[] = {-2.72614225801306e-10f, 2.77068142495902e-08f, -2.10102402082508e-06f, -5.69250639462346e-05f,
                                -7.34990630326855e-04f, -2.95459980854025e-03f, -1.60960333262415e-02f};
  static const float below[] = {-1.45660718464996e-05f, -2.13374055278905e-04f, -1.68282697438203e-03f, -7.37332916720468e-03f, -1.42647390514189e-02f};
  v128_t numerator = wasm_f32x4_splat(above[0]), denominator = wasm_f32x4_splat(below[0]);
#pragma unroll
  for (int i = 1; i < 7; i++) numerator = wasm_f32x4_add(wasm_f32x4_mul(numerator, square), wasm_f32x4_splat(above[i]));
#pragma unroll
  for (int i = 1; i < 5; i++) denominator = wasm_f32x4_add(wasm_f32x4_mul(denominator, square), wasm_f32x4_splat(below[i]));
  return wasm_f32x4_div(wasm_f32x4_mul(x, numerator), denominator);
}

INLINE v128_t sigmoid(v128_t x) {
  v128_t one = wasm_f32x4_splat(1);
  return wasm_f32x4_div(one, wasm_f32x4_add(one, exponential(wasm_f32x4_neg(x))));
}

INLINE v128_t relu(v128_t x) { return wasm_f32x4_max(wasm_f32x4_splat(0), x); }

/** `out` may be `x`; both have room for a multiple of 4 numbers. */
#define UNARY(name, function)                                                                                          \
  EXPORT(name) void apply_##name(const float *x, float *out, int count) {                                              \
    for (int i = 0; i < count; i += 4) wasm_v128_store(out + i, function(wasm_v128_load(x + i)));                      \
  }

UNARY(relu, relu)
UNARY(erf, error_function)
UNARY(sigmoid, sigmoid)

/** The second operand (period) is repeated along the first (count). */
#define BINARY(name, operation, operator)                                                                              \
  EXPORT(name) void apply_##name(const float *x, const float *y, float *out, int count, int period) {                  \
    for (int first = 0; first < count; first += period) {                                                              \
      int i = 0;                                                                                                       \
      for (; i + 4 <= period; i += 4) wasm_v128_store(out + first + i, operation(wasm_v128_load(x + first + i), wasm_v128_load(y + i))); \
      for (; i < period; i++) out[first + i] = x[first + i] operator y[i];                                             \
    }                                                                                                                  \
  }

BINARY(add, wasm_f32x4_add, +)
BINARY(multiply, wasm_f32x4_mul, *)

/* ---- Layers ---- */

INLINE float sum_lanes(v128_t x) {
  return wasm_f32x4_extract_lane(x, 0) + wasm_f32x4_extract_lane(x, 1) + wasm_f32x4_extract_lane(x, 2) + wasm_f32x4_extract_lane(x, 3);
}

INLINE float inner_product(const float *x, const float *y, int length) {
  v128_t sum = wasm_f32x4_splat(0);
  int i = 0;
  for (; i + 4 <= length; i += 4) sum = wasm_f32x4_add(sum, wasm_f32x4_mul(wasm_v128_load(x + i), wasm_v128_load(y + i)));
  float result = sum_lanes(sum);
  for (; i < length; i++) result += x[i] * y[i];
  return result;
}

EXPORT(layer_norm) void layer_norm(const float *x, const float *weight, const float *bias, float *out, int rows, int length, float epsilon) {
  for (int row = 0; row < rows; row++, x += length, out += length) {
    v128_t sum = wasm_f32x4_splat(0);
    int i = 0;
    for (; i + 4 <= length; i += 4) sum = wasm_f32x4_add(sum, wasm_v128_load(x + i));
    float total = sum_lanes(sum);
    for (; i < length; i++) total += x[i];
    float mean = total / (float)length;
    for (i = 0; i + 4 <= length; i += 4) wasm_v128_store(out + i, wasm_f32x4_sub(wasm_v128_load(x + i), wasm_f32x4_splat(mean)));
    for (; i < length; i++) out[i] = x[i] - mean;
    float factor = 1 / __builtin_sqrtf(inner_product(out, out, length) / (float)length + epsilon);
    for (i = 0; i + 4 <= length; i += 4) {
      v128_t scaled = wasm_f32x4_mul(wasm_f32x4_mul(wasm_v128_load(out + i), wasm_f32x4_splat(factor)), wasm_v128_load(weight + i));
      wasm_v128_store(out + i, wasm_f32x4_add(scaled, wasm_v128_load(bias + i)));
    }
    for (; i < length; i++) out[i] = out[i] * factor * weight[i] + bias[i];
  }
}

/** Replace scores by their softmax; where the mask is 0 the result is 0. */
INLINE void masked_softmax(float *scores, const uint8_t *mask, int length) {
  float highest = -__builtin_inff(), sum = 0;
  for (int i = 0; i < length; i++)
    if (mask[i] && scores[i] > highest) highest = scores[i];
  int i = 0;
  for (; i + 4 <= length; i += 4) wasm_v128_store(scores + i, exponential(wasm_f32x4_sub(wasm_v128_load(scores + i), wasm_f32x4_splat(highest))));
  for (; i < length; i++) scores[i] = exponential_1(scores[i] - highest);
  for (i = 0; i < length; i++) sum += scores[i] = mask[i] ? scores[i] : 0;
  float factor = sum > 0 ? 1 / sum : 0;
  for (i = 0; i < length; i++) scores[i] *= factor;
}

/**
 * Multi-head attention: queries (N, H, T, K), keys (N, H, S, K) and values (N, H, S, V) to `out` (N, T, H, V) and the
 * weights (N, H, T, S). The mask has S bytes per row, and strides of 0 where it is the same for all; `heads` (H) switches
 * heads on and off.
 */
EXPORT(attention) void attention(const float *queries, const float *keys, const float *values, const uint8_t *mask, int mask_batch_stride, int mask_row_stride,
                                 const float *heads, float *weights, float *out, int num_batches, int num_heads, int num_rows, int num_keys, int key_size, int value_size, float divisor) {
  for (int batch = 0; batch < num_batches; batch++)
    for (int head = 0; head < num_heads; head++, keys += num_keys * key_size, values += num_keys * value_size)
      for (int row = 0; row < num_rows; row++, queries += key_size, weights += num_keys) {
        const float *key = keys;
        for (int i = 0; i < num_keys; i++, key += key_size) weights[i] = inner_product(queries, key, key_size) / divisor;
        masked_softmax(weights, mask + batch * mask_batch_stride + row * mask_row_stride, num_keys);
        float *result = out + ((size_t)(batch * num_rows + row) * num_heads + head) * value_size;
        int column = 0;
        for (; column + 4 <= value_size; column += 4) {
          v128_t sum = wasm_f32x4_splat(0);
          for (int i = 0; i < num_keys; i++) sum = wasm_f32x4_add(sum, wasm_f32x4_mul(wasm_f32x4_splat(weights[i]), wasm_v128_load(values + i * value_size + column)));
          wasm_v128_store(result + column, wasm_f32x4_mul(sum, wasm_f32x4_splat(heads[head])));
        }
        for (; column < value_size; column++) {
          float sum = 0;
          for (int i = 0; i < num_keys; i++) sum += weights[i] * values[i * value_size + column];
          result[column] = sum * heads[head];
        }
      }
}

/* ---- Probabilities ---- */

/** Return the sum of e^(x - highest); NaN if a number is NaN. */
INLINE double sum_exponentials(const float *x, int length, float highest) {
  v128_t sum = wasm_f64x2_splat(0);
  double rest = 0;
  int i = 0;
  for (; i + 4 <= length; i += 4) {
    v128_t terms = exponential(wasm_f32x4_sub(wasm_v128_load(x + i), wasm_f32x4_splat(highest)));
    v128_t pairs = wasm_f32x4_add(terms, wasm_i32x4_shuffle(terms, terms, 2, 3, 0, 1));
    sum = wasm_f64x2_add(sum, wasm_f64x2_promote_low_f32x4(pairs));
  }
  for (; i < length; i++) rest += exponential_1(x[i] - highest);
  return wasm_f64x2_extract_lane(sum, 0) + wasm_f64x2_extract_lane(sum, 1) + rest;
}

INLINE float highest_of(const float *x, int length) {
  v128_t highest = wasm_f32x4_splat(-__builtin_inff());
  int i = 0;
  for (; i + 4 <= length; i += 4) highest = wasm_f32x4_pmax(highest, wasm_v128_load(x + i));
  float result = -__builtin_inff();
  for (int lane = 0; lane < 4; lane++) result = ((float *)&highest)[lane] > result ? ((float *)&highest)[lane] : result;
  for (; i < length; i++) result = x[i] > result ? x[i] : result;
  return result;
}

/** Write the highest number of each row, and the sum of e^(x - highest): together they are log(sum(e^x)). */
EXPORT(normalizers) void normalizers(const float *x, int rows, int length, float *highest, double *sums) {
  for (int row = 0; row < rows; row++, x += length) {
    highest[row] = highest_of(x, length);
    sums[row] = sum_exponentials(x, length, highest[row]);
  }
}

/** Subtract a number from each row: the logits become log-probabilities. */
EXPORT(subtract_from_rows) void subtract_from_rows(float *x, int rows, int length, const double *numbers) {
  for (int row = 0; row < rows; row++, x += length)
    for (int i = 0; i < length; i++) x[i] = (float)(x[i] - numbers[row]);
}

/** Write the index of the highest number of each row, of equal ones the first. */
EXPORT(arg_max) void arg_max(const float *x, int rows, int length, int32_t *indices) {
  for (int row = 0; row < rows; row++, x += length) {
    float highest = highest_of(x, length);
    int i = 0;
    v128_t wanted = wasm_f32x4_splat(highest);
    while (i + 4 <= length && !wasm_v128_any_true(wasm_f32x4_eq(wasm_v128_load(x + i), wanted))) i += 4;
    while (i < length - 1 && x[i] != highest) i++;
    indices[row] = i;
  }
}

/* ---- Copies ---- */

/** (batches, rows, columns, size) becomes (batches, columns, rows, size). */
EXPORT(swap_middle_axes) void swap_middle_axes(const float *x, float *out, int batches, int rows, int columns, int size) {
  for (int batch = 0; batch < batches; batch++)
    for (int column = 0; column < columns; column++)
      for (int row = 0; row < rows; row++, out += size) __builtin_memcpy(out, x + ((size_t)(batch * rows + row) * columns + column) * size, (size_t)size * sizeof *x);
}

/** Append `second` (count, second_size) to each row of `first` (count, first_size). */
EXPORT(concatenate) void concatenate(const float *first, const float *second, float *out, int count, int first_size, int second_size) {
  for (int i = 0; i < count; i++, out += first_size + second_size) {
    __builtin_memcpy(out, first + (size_t)i * first_size, (size_t)first_size * sizeof *out);
    __builtin_memcpy(out + first_size, second + (size_t)i * second_size, (size_t)second_size * sizeof *out);
  }
}
