import { describe, expect, it } from "vitest";

import { describeFormula, parseFormula } from "../../src/app/features/lessons/formula";

describe("a formula", () => {
  it.each([
    ["A = softmax(Q · Kᵀ / √d_k)", "A = softmax ( mfrac(Q · msup(K, T), msqrt(msub(d, k))) )"],
    ["h_j = f(h_{j-1}, x_j)", "msub(h, j) = f ( msub(h, j − 1) , msub(x, j) )"],
    ["α_ij = exp(e_ij) / ∑ₖ exp(e_ik)", "msub(α, ij) = mfrac(exp ( msub(e, ij) ), munder(∑, k) exp ( msub(e, ik) ))"],
    ["(x − mean) / √(var + ε) · γ + β", "mfrac(x − mean, msqrt(var + ε)) · γ + β"],
    ["p = (1 − ε) · one-hot + ε / V", "p = ( 1 − ε ) · one-hot + mfrac(ε, V)"],
    ["score = log P / ((5 + length) / 6)^α", "score = mfrac(log P, msup(( mfrac(5 + length, 6) ), α))"],
    ["rate = d_model^(−0.5) · min(step^(−0.5), step · warmup^(−1.5))", "rate = msubsup(d, model, − 0.5) · min ( msup(step, − 0.5) , step · msup(warmup, − 1.5) )"],
    ["Mᵢⱼ = 0, −∞", "msub(M, i j) = 0 , − ∞"],
    ["headᵢ = Attention(Q · W_Qᵢ)", "msub(head, i) = Attention ( Q · msub(W, Q i) )"],
    ["L = (t − y)²", "L = msup(( t − y ), 2)"],
    ["cos(a, b) = a · b / (|a| · |b|)", "cos ( a , b ) = mfrac(a · b, | a | · | b |)"],
    ["n · n · d  :  n · d · d  =  n : d", "n · n · d : n · d · d = n : d"],
    ["−∑ pᵢ log qᵢ", "− ∑ msub(p, i) log msub(q, i)"],
    ["10000^(2i/d)", "msup(10000, mfrac(2 i, d))"],
  ])("%s", (text, expected) => expect(describeFormula(parseFormula(text))).toBe(expected));
  it("that is damaged still has all its characters", () => {
    expect(describeFormula(parseFormula("a) + (b / "))).toContain("b");
    expect(describeFormula(parseFormula(""))).toBe("");
  });
});
