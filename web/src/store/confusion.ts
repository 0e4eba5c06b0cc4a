/// Figures of one class, from a confusion matrix.
export interface ClassFigures {
  label: number;
  total: number; // samples of the class
  right: number;
  said: number; // times that this class was said
  recall: number; // right of total; NaN: no sample
  precision: number; // right of said; NaN: never said
  f1: number;
}

/// Of a matrix [n][n], row = label, column = what was said.
export function perClass(matrix: readonly number[], n: number): ClassFigures[] {
  const at = (row: number, column: number): number => matrix[row * n + column] ?? 0;
  return Array.from({ length: n }, (_, label) => {
    let total = 0;
    let said = 0;
    for (let i = 0; i < n; i++) {
      total += at(label, i);
      said += at(i, label);
    }
    const right = at(label, label);
    const [recall, precision] = [right / total, right / said]; // 0 / 0 is NaN
    const f1 = total + said > 0 ? (2 * right) / (total + said) : NaN;
    return { label, total, right, said, recall, precision, f1 };
  });
}

/// The pairs that are mixed up most: of label taken for said, most first.
export function worstPairs(
  matrix: readonly number[],
  n: number,
  most = 5,
): { label: number; said: number; count: number }[] {
  const pairs = matrix
    .slice(0, n * n)
    .map((count, i) => ({ label: Math.floor(i / n), said: i % n, count }))
    .filter((p) => p.label !== p.said && p.count > 0);
  return pairs.sort((a, b) => b.count - a.count).slice(0, most);
}

/// Signed bytes, as a board gives its outputs.
export const int8s = (bytes: Uint8Array): Int8Array =>
  new Int8Array(bytes.buffer, bytes.byteOffset, bytes.length);
