/** R17 in float64: the frequencies of rotary positions in all their scalings, and the turn itself. */

export interface ReferenceRotary {
  /** Elements of a row that are turned. */
  dims: number;
  interleaved?: boolean;
  base?: number;
  scaling?:
    | { type: "linear" | "ntk"; factor: number }
    | {
        type: "llama3";
        factor: number;
        originalLength: number;
        lowFrequencyFactor: number;
        highFrequencyFactor: number;
      }
    | {
        type: "yarn";
        factor: number;
        originalLength: number;
        betaFast?: number;
        betaSlow?: number;
        attentionFactor?: number;
      };
}

const turn = 2 * Math.PI;

/** Radians per position of every pair. */
export function rotaryFrequencies({ dims, base = 10000, scaling }: ReferenceRotary): number[] {
  const pairs = Array.from({ length: dims / 2 }, (_, pair) => pair);
  const plain = (b: number) => pairs.map((pair) => b ** ((-2 * pair) / dims));
  switch (scaling?.type) {
    case undefined:
      return plain(base);
    case "linear":
      return plain(base).map((theta) => theta / scaling.factor);
    case "ntk":
      return plain(base * scaling.factor ** (dims / (dims - 2)));
    case "llama3": {
      const { factor, originalLength, lowFrequencyFactor: low, highFrequencyFactor: high } = scaling;
      return plain(base).map((theta) => {
        const turns = (originalLength * theta) / turn;
        if (turns > high) return theta;
        if (turns < low) return theta / factor;
        const kept = (turns - low) / (high - low);
        return kept * theta + ((1 - kept) * theta) / factor;
      });
    }
    case "yarn": {
      const { factor, originalLength, betaFast = 32, betaSlow = 1 } = scaling;
      // The pair that turns so often over the original length.
      const pairOf = (turns: number) => (dims * Math.log(originalLength / (turns * turn))) / (2 * Math.log(base));
      const from = Math.max(0, Math.floor(pairOf(betaFast)));
      const found = Math.min(dims - 1, Math.ceil(pairOf(betaSlow)));
      const to = found === from ? from + 0.001 : found;
      return plain(base).map((theta, pair) => {
        const stretched = Math.min(1, Math.max(0, (pair - from) / (to - from)));
        return theta * (1 - stretched) + (theta / factor) * stretched;
      });
    }
  }
}

/** YaRN's factor of cosines and sines. */
export function rotaryAmplitude({ scaling }: ReferenceRotary): number {
  if (scaling?.type !== "yarn") return 1;
  return scaling.attentionFactor ?? (scaling.factor > 1 ? 0.1 * Math.log(scaling.factor) + 1 : 1);
}

/** Rows [rows, width], each at its own position. */
export function referenceRotary(
  x: ArrayLike<number>,
  width: number,
  positions: ArrayLike<number>,
  options: ReferenceRotary,
): Float64Array {
  const y = Float64Array.from(x);
  const frequencies = rotaryFrequencies(options);
  const amplitude = rotaryAmplitude(options);
  const half = options.dims / 2;
  for (let row = 0; row < y.length / width; row++) {
    frequencies.forEach((theta, pair) => {
      const angle = positions[row]! * theta;
      const [cos, sin] = [Math.cos(angle) * amplitude, Math.sin(angle) * amplitude];
      const first = row * width + (options.interleaved ? 2 * pair : pair);
      const second = first + (options.interleaved ? 1 : half);
      y[first] = x[first]! * cos - x[second]! * sin;
      y[second] = x[first]! * sin + x[second]! * cos;
    });
  }
  return y;
}
