/** What one slip of the finger costs: a key beside the right one, two keys swapped, one left out, two struck at once. */
export const TYPO_COST = 1
const DOUBLED = 0.75
const FAR_KEY = 1.5
/** A letter added that touches neither of its neighbours was hardly a finger's slip: `gomail` may be a name. */
export const FAR_ADDED = 1.25
/** People notice a wrong first letter, so what begins differently is more likely another name. */
const WRONG_START = 1

/**
 * How far `typed` lies from `meant`, in slips: Damerau's distance (optimal string alignment), where a far key weighs
 * more than one that touches, and a doubled letter less. For labels, which have 63 characters at most. Beyond `limit`
 * it need not say how far.
 */
export function typoDistance(
  typed: string,
  intended: string,
  limit = Number.POSITIVE_INFINITY,
): number {
  if (typed === intended) return 0
  if (minimumDistance(typed, intended) > limit) return Number.POSITIVE_INFINITY
  let earlier: number[] = []
  let above = Array.from({ length: intended.length + 1 }, (_, column) => column * TYPO_COST)
  for (let row = 1; row <= typed.length; row++) {
    const line = [row * TYPO_COST]
    for (let column = 1; column <= intended.length; column++) {
      line.push(cheapest(typed, intended, row, column, { line, above, earlier }))
    }
    ;[earlier, above] = [above, line]
  }
  const cost = above[intended.length] ?? Number.POSITIVE_INFINITY
  return typed.charAt(0) === intended.charAt(0) ? cost : cost + WRONG_START
}

function added(letter: string, before: string, after: string): number {
  if (letter === before) return DOUBLED
  return isNear(letter, before) || isNear(letter, after) ? TYPO_COST : FAR_ADDED
}

/** Cheap to know: a letter too many costs a doubling, a letter that the other name lacks a whole slip. */
function minimumDistance(typed: string, intended: string): number {
  const length = typed.length - intended.length
  const byLength = length > 0 ? length * DOUBLED : -length * TYPO_COST
  const [has, needs] = [lettersOf(typed), lettersOf(intended)]
  return Math.max(byLength, bitCount(needs & ~has), bitCount(has & ~needs))
}

/** One bit a letter; the digits share theirs with some, which only makes the bound lower. */
function lettersOf(name: string): number {
  let letters = 0
  for (let index = 0; index < name.length; index++) letters |= 1 << (name.charCodeAt(index) & 31)
  return letters
}

function bitCount(bits: number): number {
  let count = 0
  for (let rest = bits; rest !== 0; rest &= rest - 1) count++
  return count
}

type Costs = { line: number[]; above: number[]; earlier: number[] }

function cheapest(
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
    (costs.above[column - 1] ?? never) + (a === b ? 0 : isNear(a, b) ? TYPO_COST : FAR_KEY),
    (costs.above[column] ?? never) + added(a, aBefore, typed.charAt(row)),
    (costs.line[column - 1] ?? never) + TYPO_COST,
    isSwapped ? (costs.earlier[column - 2] ?? never) + TYPO_COST : never,
  )
}

const KEY_ROWS = ['1234567890-', 'qwertyuiop', 'asdfghjkl', 'zxcvbnm']
const POSITIONS = new Map(
  KEY_ROWS.flatMap((row, y) => [...row].map((key, x) => [key, { x: x + y / 2, y }] as const)),
)
/** Pairs that eyes or ears confuse. */
const LOOKALIKES = new Set(['0o', '1l', '1i', 'il', 'ou', 'mn', 'ck', 'uv', 'vw', 'sz', '5s', 'vy'])

/** Whether two keys touch on a QWERTY keyboard, or the characters look or sound alike. */
function isNear(a: string, b: string): boolean {
  if (LOOKALIKES.has(a < b ? a + b : b + a)) return true
  const [first, second] = [POSITIONS.get(a), POSITIONS.get(b)]
  if (first === undefined || second === undefined) return false
  return Math.abs(first.x - second.x) <= 1 && Math.abs(first.y - second.y) <= 1
}
