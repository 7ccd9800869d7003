/** Cost of one typo: an adjacent key, two swapped keys, a missing key or an adjacent extra key. */
export const TYPO_COST = 1
const DOUBLED_LETTER_COST = 0.75
const DISTANT_KEY_COST = 1.5
/**
 * Cost of an extra letter not adjacent to its neighbors: not a likely typo; `gomail` may be a name.
 */
export const UNRELATED_INSERTION_COST = 1.25
/**
 * Extra cost of a wrong first letter: people notice it, so the text is more likely another name.
 */
export const WRONG_FIRST_LETTER_COST = 1

/**
 * Returns the typo distance of `typed` from `intended`: Damerau's distance (optimal string
 * alignment) with a higher cost for distant keys and a lower one for doubled letters. For labels of
 * at most 63 characters. A result above `limit` may be Infinity.
 */
export function typoDistance(
  typed: string,
  intended: string,
  limit = Number.POSITIVE_INFINITY,
): number {
  if (typed === intended) return 0
  if (limit !== Number.POSITIVE_INFINITY) {
    const least = minimumDistance(
      typed.length,
      lettersOf(typed),
      intended.length,
      lettersOf(intended),
    )
    if (least > limit) return Number.POSITIVE_INFINITY
  }
  let earlier: number[] = []
  let above = Array.from({ length: intended.length + 1 }, (_, column) => column * TYPO_COST)
  for (let row = 1; row <= typed.length; row++) {
    const line = [row * TYPO_COST]
    for (let column = 1; column <= intended.length; column++) {
      line.push(minimumCost(typed, intended, row, column, { line, above, earlier }))
    }
    ;[earlier, above] = [above, line]
  }
  const cost = above[intended.length] ?? Number.POSITIVE_INFINITY
  return typed.charAt(0) === intended.charAt(0) ? cost : cost + WRONG_FIRST_LETTER_COST
}

function insertionCost(letter: string, before: string, after: string): number {
  if (letter === before) return DOUBLED_LETTER_COST
  return isNear(letter, before) || isNear(letter, after) ? TYPO_COST : UNRELATED_INSERTION_COST
}

/**
 * Returns a cheap lower bound of the distance from the lengths and the letters of both names: an
 * extra letter costs at least a doubled one, a letter missing from the other name a full typo.
 */
export function minimumDistance(
  typedLength: number,
  typedLetters: number,
  intendedLength: number,
  intendedLetters: number,
): number {
  const length = typedLength - intendedLength
  const byLength = length > 0 ? length * DOUBLED_LETTER_COST : -length * TYPO_COST
  const missing = bitCount(intendedLetters & ~typedLetters)
  return Math.max(byLength, missing, bitCount(typedLetters & ~intendedLetters))
}

/** Returns one bit per letter. Digits share bits with letters, which only lowers the bound. */
export function lettersOf(name: string): number {
  let letters = 0
  for (let index = 0; index < name.length; index++) letters |= 1 << (name.charCodeAt(index) & 31)
  return letters
}

/** Counts the bits in pairs, in fours and in bytes, and then adds the bytes. */
function bitCount(bits: number): number {
  const pairs = bits - ((bits >>> 1) & 0x55555555)
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333)
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
}

type Costs = { line: number[]; above: number[]; earlier: number[] }

function minimumCost(
  typed: string,
  intended: string,
  row: number,
  column: number,
  costs: Costs,
): number {
  const [a, b] = [typed.charAt(row - 1), intended.charAt(column - 1)]
  const [aBefore, bBefore] = [typed.charAt(row - 2), intended.charAt(column - 2)]
  const isSwapped = row > 1 && column > 1 && a === bBefore && b === aBefore
  const never = Number.POSITIVE_INFINITY
  return Math.min(
    (costs.above[column - 1] ?? never) +
      (a === b ? 0 : isNear(a, b) ? TYPO_COST : DISTANT_KEY_COST),
    (costs.above[column] ?? never) + insertionCost(a, aBefore, typed.charAt(row)),
    (costs.line[column - 1] ?? never) + TYPO_COST,
    isSwapped ? (costs.earlier[column - 2] ?? never) + TYPO_COST : never,
  )
}

const KEY_ROWS = ['1234567890-', 'qwertyuiop', 'asdfghjkl', 'zxcvbnm']
const POSITIONS = KEY_ROWS.flatMap((row, y) => [...row].map((key, x) => ({ key, x: x + y / 2, y })))
/** Pairs that look or sound alike. */
const LOOKALIKES = ['0o', '1l', '1i', 'il', 'ou', 'mn', 'ck', 'uv', 'vw', 'sz', '5s', 'vy']

/** The keys that touch a key on a QWERTY keyboard, itself included, or look or sound like it. */
const NEAR: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  POSITIONS.map(({ key, x, y }) => {
    const touching = POSITIONS.filter(
      other => Math.abs(x - other.x) <= 1 && Math.abs(y - other.y) <= 1,
    ).map(other => other.key)
    const alike = LOOKALIKES.filter(pair => pair.includes(key)).map(pair => pair.replace(key, ''))
    return [key, new Set([...touching, ...alike])]
  }),
)

const isNear = (a: string, b: string): boolean => NEAR.get(a)?.has(b) ?? false
