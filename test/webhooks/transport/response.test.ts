import { describe, expect, test } from 'vitest'
import {
  BODY_READ_MAX,
  EXCERPT_LENGTH_MAX,
  readAnswer,
  STORED_HEADERS_MAX,
} from '../../../src/webhooks/response.ts'

type Given = Parameters<typeof readAnswer>[0]

async function* chunksOf(chunks: readonly (string | Buffer | Error)[]) {
  for (const chunk of chunks) {
    if (chunk instanceof Error) throw chunk
    yield Buffer.from(chunk)
  }
}
const answer = (chunks: readonly (string | Buffer | Error)[], headers: Given['headers'] = {}) =>
  readAnswer({ statusCode: 200, headers, body: chunksOf(chunks) })
const excerpt = async (...given: Parameters<typeof answer>) => (await answer(...given)).excerpt

describe('an excerpt', () => {
  test('is the body if it is short, in any chunks', async () => {
    expect(await excerpt(['it is ', 'thäre'])).toBe('it is thäre')
    expect(await excerpt([Buffer.from([0xc3]), Buffer.from([0xa4])])).toBe('ä')
    expect(await excerpt([])).toBe('')
  })

  test('is sanitized', async () => {
    expect(await excerpt(['<h1>no</h1>\r\n\x1b[31mred\u202e'])).toBe(
      '<h1>no</h1> \uFFFD[31mred\uFFFD',
    )
  })

  test('has 4,096 characters at most', async () => {
    expect(await excerpt(['x'.repeat(EXCERPT_LENGTH_MAX)])).toHaveLength(EXCERPT_LENGTH_MAX)
    const cut = await excerpt(['x'.repeat(EXCERPT_LENGTH_MAX + 1)])
    expect(cut).toBe(`${'x'.repeat(EXCERPT_LENGTH_MAX - 1)}…`)
  })

  test('is as far as the body arrived', async () => {
    expect(await excerpt(['begun', new Error('reset')])).toBe('begun')
    expect(await excerpt([new Error('reset')])).toBe('')
  })

  test('of binary data is its size', async () => {
    const packed = { 'content-encoding': 'br' }
    expect(await excerpt(['abc'], packed)).toBe('(binary, 3 bytes)')
    expect(await excerpt(['a\0c'])).toBe('(binary, 3 bytes)')
    expect(await excerpt(['abc', new Error('reset')], packed)).toBe('(binary, more than 3 bytes)')
    expect(await excerpt(['abc'], { 'content-encoding': 'identity' })).toBe('abc')
  })
})

test('at most 64 KiB of a body are read', async () => {
  let asked = 0
  async function* endless() {
    for (;;) {
      asked += 16 * 1_024
      yield Buffer.alloc(16 * 1_024, 'x')
    }
  }
  const body = endless()
  await readAnswer({ statusCode: 200, headers: {}, body })
  expect(asked).toBe(BODY_READ_MAX)
})

describe('headers', () => {
  test('are stored sanitized and short; cookies are not', async () => {
    const given = {
      server: 'a\x1bb',
      via: ['1', '2'],
      long: 'x'.repeat(300),
      'set-cookie': ['s=1'],
    }
    const { headers } = await answer([], given)
    expect(headers).toEqual({
      server: 'a\uFFFDb',
      via: '1,2',
      long: `${'x'.repeat(199)}…`,
    })
  })

  test('are 30 at most, including Retry-After', async () => {
    const many = Array.from({ length: 40 }, (_, nth) => [`x-${nth}`, 'a'])
    const { headers } = await answer([], { ...Object.fromEntries(many), 'retry-after': '7' })
    expect(Object.keys(headers)).toHaveLength(STORED_HEADERS_MAX)
    expect(headers).toMatchObject({ 'retry-after': '7', 'x-0': 'a', 'x-28': 'a' })
  })

  test('may have the name of an object property', async () => {
    const given = JSON.parse('{ "__proto__": "a", "constructor": "b" }')
    const { headers } = await answer([], given)
    expect(Object.entries(headers)).toEqual([
      ['__proto__', 'a'],
      ['constructor', 'b'],
    ])
  })
})
