/**
 * The baseline: a character n-gram model with interpolated Kneser–Ney smoothing (R. Kneser and H. Ney, "Improved backing-off for m-gram
 * language modeling", ICASSP 1995; the interpolated form of S. F. Chen and J. Goodman, "An empirical study of smoothing techniques for
 * language modeling", 1999, section 2.7).
 *
 *     p_k(w | c) = max(n_k(c w) − D_k, 0) / n_k(c ·) + D_k · N_k(c) / n_k(c ·) · p_{k−1}(w | c without its first character)
 *
 * The highest order counts occurrences; a lower one counts how many different characters stand before c w. N_k(c) is how many different
 * characters follow c, D_k = n₁ / (n₁ + 2 n₂) with n₁ and n₂ the k-grams counted once and twice. p_0 is uniform over the characters of the
 * training text and one more, which stands for any other.
 */

/** @typedef {{ total: number, following: Map<string, number> }} Context */

/** Where too few k-grams are counted once or twice to estimate it. */
const USUAL_DISCOUNT = 0.5;

export class NGramModel {
  /**
   * @param {string} text
   * @param {number} order
   */
  constructor(text, order) {
    const characters = [...text];
    this.order = order;
    this.characters = new Set(characters);
    /** By k − 1. @type {Map<string, Context>[]} */
    this.orders = Array.from({ length: order }, () => new Map());
    for (let at = order - 1; at < characters.length; ++at)
      add(this.#table(order), characters.slice(at - order + 1, at).join(""), characters[at] ?? "");
    for (let k = order - 1; k >= 1; --k)
      for (const [context, { following }] of this.#table(k + 1)) {
        const shorter = withoutFirst(context);
        for (const character of following.keys()) add(this.#table(k), shorter, character);
      }
    this.discounts = this.orders.map(discount);
  }

  /** @param {number} k */
  #table(k) {
    return /** @type {Map<string, Context>} */ (this.orders[k - 1]);
  }

  /**
   * The probability of a character after a context, of which the last order − 1 characters count.
   * @param {string} character
   * @param {readonly string[]} context
   */
  probability(character, context) {
    let result = 1 / (this.characters.size + 1);
    for (let k = 1; k <= Math.min(this.order, context.length + 1); ++k) {
      const seen = this.#table(k).get(context.slice(context.length - k + 1).join(""));
      // A context that was never seen has no longer one that was.
      if (!seen) break;
      const taken = this.discounts[k - 1] ?? 0;
      const count = seen.following.get(character) ?? 0;
      result = (Math.max(count - taken, 0) + taken * seen.following.size * result) / seen.total;
    }
    return result;
  }

  /**
   * Bits that the characters of a text take, from the one at `from` on.
   * @param {string} text
   */
  bits(text, from = 0) {
    const characters = [...text];
    let bits = 0;
    for (let at = from; at < characters.length; ++at) {
      const context = characters.slice(Math.max(0, at - this.order + 1), at);
      bits -= Math.log2(this.probability(characters[at] ?? "", context));
    }
    return bits;
  }
}

/** @param {string} text */
const withoutFirst = (text) => text.slice((text.codePointAt(0) ?? 0) > 0xffff ? 2 : 1);

/**
 * @param {Map<string, Context>} table
 * @param {string} context
 * @param {string} character
 */
function add(table, context, character) {
  let entry = table.get(context);
  if (!entry) {
    entry = { total: 0, following: new Map() };
    table.set(context, entry);
  }
  entry.total += 1;
  entry.following.set(character, (entry.following.get(character) ?? 0) + 1);
}

/** @param {Map<string, Context>} table */
function discount(table) {
  let [once, twice] = [0, 0];
  for (const { following } of table.values())
    for (const count of following.values()) {
      if (count === 1) ++once;
      if (count === 2) ++twice;
    }
  return once > 0 && twice > 0 ? once / (once + 2 * twice) : USUAL_DISCOUNT;
}
