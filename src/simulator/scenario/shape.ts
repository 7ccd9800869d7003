/** Says where plain data that a person wrote is not as it must be; `place` is its path from the top. */
export type Shape = (value: unknown, place: string) => void

/** A mistake in such data, in a sentence. */
export class Mismatch extends Error {}

/** An object with these keys; all may be left out but those that are needed. */
export const object =
  <T>(
    shapes: { readonly [K in keyof T]-?: Shape },
    needed: readonly (keyof T & string)[] = [],
  ): Shape =>
  (value, place) => {
    const entries = entriesOf(value, place)
    const known = new Map(Object.entries<Shape>(shapes))
    for (const [key, one] of entries) {
      const shape = known.get(key)
      if (shape === undefined) {
        throw new Mismatch(`${place} has "${key}"; it takes ${[...known.keys()].join(', ')}.`)
      }
      shape(one, `${place}.${key}`)
    }
    const missing = needed.find(key => !entries.some(([given]) => given === key))
    if (missing !== undefined) throw new Mismatch(`${place} has no "${missing}", which it needs.`)
  }

/** An object whose keys are names. */
export const record =
  (name: RegExp, expected: string, shape: Shape): Shape =>
  (value, place) => {
    for (const [key, one] of entriesOf(value, place)) {
      if (!name.test(key)) throw new Mismatch(`${place} has "${key}"; it takes ${expected}.`)
      shape(one, `${place}[${JSON.stringify(key)}]`)
    }
  }

/** A list, each of whose entries has this shape. */
export const list =
  (shape: Shape, expected: string): Shape =>
  (value, place) => {
    if (!Array.isArray(value)) throw mismatch(value, place, expected)
    for (const [index, one] of value.entries()) shape(one, `${place}[${index}]`)
  }

/** One thing, or a list of such things. */
export const oneOrMore =
  (shape: Shape): Shape =>
  (value, place) =>
    (Array.isArray(value) ? list(shape, '') : shape)(value, place)

/** A text that passes the test. */
export const text = (expected = 'a text', fits: (given: string) => boolean = () => true): Shape =>
  only(expected, value => typeof value === 'string' && fits(value))

export const oneOf = (words: readonly string[]): Shape =>
  only(`one of ${words.join(', ')}`, value => typeof value === 'string' && words.includes(value))

export const whole = (from: number, to: number): Shape =>
  only(
    `a whole number from ${from} to ${to}`,
    value => Number.isInteger(value) && Number(value) >= from && Number(value) <= to,
  )

export const number = (from: number, to: number): Shape =>
  only(
    `a number from ${from} to ${to}`,
    value => typeof value === 'number' && value >= from && value <= to,
  )

export const flag: Shape = only('true or false', value => typeof value === 'boolean')

/** Anything that holds. */
export function only(expected: string, holds: (value: unknown) => boolean): Shape {
  return (value, place) => {
    if (!holds(value)) throw mismatch(value, place, expected)
  }
}

function entriesOf(value: unknown, place: string): [string, unknown][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw mismatch(value, place, 'an object: {…}')
  }
  return Object.entries(value)
}

const mismatch = (value: unknown, place: string, expected: string) =>
  new Mismatch(`${place} is ${shown(value)}; it takes ${expected}.`)

/** Of long data the beginning. */
function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text
}

/** As much as a person needs to find it again. */
const SHOWN_MAX = 80
