/** What one slip of the finger costs: a key beside the right one, two keys swapped, one left out, two struck at once. */
export const SLIP = 1
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
export function slips(typed: string, meant: string, limit = Number.POSITIVE_INFINITY): number {
  if (typed === meant) return 0
  if (leastSlips(typed, meant) > limit) return Number.POSITIVE_INFINITY
  let earlier: number[] = []
  let above = Array.from({ length: meant.length + 1 }, (_, column) => column * SLIP)
  for (let row = 1; row <= typed.length; row++) {
    const line = [row * SLIP]
    for (let column = 1; column <= meant.length; column++) {
      line.push(cheapest(typed, meant, row, column, { line, above, earlier }))
    }
    ;[earlier, above] = [above, line]
  }
  const cost = above[meant.length] ?? Number.POSITIVE_INFINITY
  return typed.charAt(0) === meant.charAt(0) ? cost : cost + WRONG_START
}

function added(letter: string, before: string, after: string): number {
  if (letter === before) return DOUBLED
  return isNear(letter, before) || isNear(letter, after) ? SLIP : FAR_ADDED
}

/** Cheap to know: a letter too many costs a doubling, a letter that the other name lacks a whole slip. */
function leastSlips(typed: string, meant: string): number {
  const length = typed.length - meant.length
  const byLength = length > 0 ? length * DOUBLED : -length * SLIP
  const [has, wants] = [lettersOf(typed), lettersOf(meant)]
  return Math.max(byLength, bitCount(wants & ~has), bitCount(has & ~wants))
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

function cheapest(typed: string, meant: string, row: number, column: number, costs: Costs): number {
  const [a, b] = [typed.charAt(row - 1), meant.charAt(column - 1)]
  const [aBefore, bBefore] = [typed.charAt(row - 2), meant.charAt(column - 2)]
  const isSwapped = row > 1 && column > 1 && a === bBefore && b === aBefore
  const never = Number.POSITIVE_INFINITY
  return Math.min(
    (costs.above[column - 1] ?? never) + (a === b ? 0 : isNear(a, b) ? SLIP : FAR_KEY),
    (costs.above[column] ?? never) + added(a, aBefore, typed.charAt(row)),
    (costs.line[column - 1] ?? never) + SLIP,
    isSwapped ? (costs.earlier[column - 2] ?? never) + SLIP : never,
  )
}

const KEY_ROWS = ['1234567890-', 'qwertyuiop', 'asdfghjkl', 'zxcvbnm']
const PLACES = new Map(
  KEY_ROWS.flatMap((row, y) => [...row].map((key, x) => [key, { x: x + y / 2, y }] as const)),
)
/** Pairs that eyes or ears confuse. */
const LOOKALIKES = new Set(['0o', '1l', '1i', 'il', 'ou', 'mn', 'ck', 'uv', 'vw', 'sz', '5s', 'vy'])

/** Whether two keys touch on a QWERTY keyboard, or the characters look or sound alike. */
function isNear(a: string, b: string): boolean {
  if (LOOKALIKES.has(a < b ? a + b : b + a)) return true
  const [first, second] = [PLACES.get(a), PLACES.get(b)]
  if (first === undefined || second === undefined) return false
  return Math.abs(first.x - second.x) <= 1 && Math.abs(first.y - second.y) <= 1
}
