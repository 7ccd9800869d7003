import { describe, expect, test } from 'vitest'
import {
  type JsonError,
  type JsonLimits,
  parseJsonText,
  readJsonText,
} from '../../src/platform/json-reader.ts'
import { fc, runs } from '../support/property.ts'

const UNLIMITED: JsonLimits = {
  depthMax: 1_000,
  fieldsMax: 1_000,
  valuesMax: 1_000_000,
  tokenBytesMax: 1_000_000,
}

/** Returns the value, or the error; a class of its own, because any value can be one. */
function parseWith(parse: (text: string) => unknown, text: string) {
  try {
    return { value: parse(text) }
  } catch {
    return 'error'
  }
}

const parse = (text: string) => parseJsonText(text, UNLIMITED)

describe('a JSON text is read as JSON.parse reads it', () => {
  test('whatever its values are', async () => {
    await fc.assert(
      fc.asyncProperty(fc.json({ noUnicodeString: false }), async text => {
        expect(await readJsonText(Buffer.from(text), UNLIMITED)).toEqual(JSON.parse(text))
      }),
      { numRuns: runs(2_000, 80) },
    )
  })

  test('or refused as JSON.parse refuses it, with any changes', () => {
    const snippet = fc.constantFrom(
      ...['{', '}', '[', ']', ',', ':', '"', '\\', '\\u00', '\\"', '\u0001', ' ', '\n', '-', '.'],
      ...['0', '01', '1e5', '1.', '.5', '+1', 'true', 'nul', 'NaN', '\u00a0', 'é', '"a":1', '//'],
    )
    const changed = fc.tuple(fc.json(), fc.double({ min: 0, max: 1, noNaN: true }), snippet)
    fc.assert(
      fc.property(changed, fc.nat(3), ([text, share, inserted], removed) => {
        const at = Math.floor(share * text.length)
        const mutated = (text.slice(0, at) + inserted + text.slice(at + removed)).toWellFormed()
        expect(parseWith(parse, mutated)).toEqual(parseWith(JSON.parse, mutated))
      }),
      { numRuns: runs(5_000, 20) },
    )
  })

  test.each([
    ...['{"a":1,"a":[2]}', '{"__proto__":{"admin":true}}', '{"2":1,"1":2}', '[[],{},[{}]]', ''],
    ...[
      '"\\ud83d\\ude00\\n\\u0000"',
      '"\\x"',
      '"\t"',
      '-0',
      '1e999',
      '-',
      'tru',
      'truefalse',
      '[1 2]',
    ],
    ...['[1,]', '{"a":1,}', '{"a"}', '{a:1}', '[', '{"a":', '"a', '"a\\', ' [ 1 , 2 ] ', '[1]]'],
    ...['{"a":1]', '[1}', 'toString', 'constructor', '{"a":constructor}', '\ufeff[]'],
  ])('%j', text => {
    const expected = parseWith(JSON.parse, text)
    expect(parseWith(parse, text)).toEqual(expected)
    if (expected !== 'error')
      expect(JSON.stringify(parse(text))).toBe(JSON.stringify(JSON.parse(text)))
    expect(({} as { admin?: boolean }).admin).toBeUndefined()
  })
})

describe('a limit holds while the text is read', () => {
  const LIMITS = { depthMax: 3, fieldsMax: 3, valuesMax: 9, tokenBytesMax: 9 }

  test.each([
    ['depthMax', '[[[1]]]', '[[[[1]]]]', 3],
    ['fieldsMax', '[{"a":1,"b":1,"c":1},{"a":1}]', '[{"a":1,"b":1,"c":1,"d":1}]', 20],
    ['fieldsMax', '{"a":1,"a":1,"a":1}', '{"a":1,"a":1,"a":1,"a":1}', 19],
    ['valuesMax', '[1,1,1,1,1,1,1,1]', '[1,1,1,1,1,1,1,1,1]', 17],
    ['tokenBytesMax', '["123456789"]', '["1234567890"]', 11],
    ['tokenBytesMax', '{"123456789":1}', '{"1234567890":1}', 11],
    ['tokenBytesMax', '[123456789]', '[1234567890]', 11],
  ])('%s: %s is read, %s is not', (limit, accepted, refused, at) => {
    expect(parseJsonText(accepted, LIMITS)).toEqual(JSON.parse(accepted))
    expect(() => parseJsonText(refused, LIMITS)).toThrow(expect.objectContaining({ limit, at }))
    // What follows is not looked at.
    expect(() => parseJsonText(`${refused.slice(0, at + 1)}\u0000`, LIMITS)).toThrow(
      expect.objectContaining({ limit, at }),
    )
  })

  test.each<[text: string, error: Partial<JsonError>]>([
    ['{"email": }', { message: 'unexpected "}"', at: 10, limit: null }],
    ['{"a":1', { message: 'unexpected end', at: 6 }],
    ['{"a":1} é', { message: 'unexpected "é"', at: 8 }],
    ['["a", "\\x"]', { message: 'invalid escape in a string', at: 6 }],
  ])('a syntax error has its place: %s', (text, error) => {
    expect(() => parse(text)).toThrow(expect.objectContaining(error))
  })
})

test('a long text is read in steps, between which other work gets its turn', async () => {
  const text = `[${Array.from({ length: 100_000 }, (_, i) => `"${i}"`).join()}]`
  let turns = 0
  const count = () => {
    turns += 1
    timer = setImmediate(count)
  }
  let timer = setImmediate(count)
  expect(await readJsonText(Buffer.from(text), UNLIMITED)).toHaveLength(100_000)
  clearImmediate(timer)
  expect(turns).toBeGreaterThanOrEqual(10)
})
