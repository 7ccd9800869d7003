import { describe, expect, test } from 'vitest'
import { type Reply, ReplyReader } from '../../../src/engine/smtp/reply.ts'
import { anyCharacter, fc, runs } from '../../support/property.ts'

type Read = { replies: Reply[]; fault: string | null; midway: boolean }

/** Latin-1 text represents bytes: one character, one octet. */
const bytesOf = (latin1: string) => Buffer.from(latin1, 'latin1')

function readAll(chunks: readonly Uint8Array[]): Read {
  const reader = new ReplyReader()
  const replies = chunks.flatMap(chunk => reader.push(chunk))
  return { replies, fault: reader.fault, midway: reader.midway }
}

const read = (latin1: string) => readAll([bytesOf(latin1)])
const onlyReply = (latin1: string): Reply | undefined => {
  const { replies, fault } = read(latin1)
  expect(fault).toBeNull()
  expect(replies).toHaveLength(1)
  return replies[0]
}

describe('replies', () => {
  test.each([
    ['250 Ok\r\n', 250, null, 'Ok'],
    ['250\r\n', 250, null, ''],
    ['250 \r\n', 250, null, ''],
    ['250-mx.test\r\n250 SIZE\r\n', 250, null, 'mx.test\nSIZE'],
    ['250-mx.test\r\n250\r\n', 250, null, 'mx.test'],
    ['599 a\r\n', 599, null, 'a'],
    ['354 go on\r\n', 354, null, 'go on'],
    ['550 5.1.1 No such user\r\n', 550, '5.1.1', 'No such user'],
    ['550-5.1.1 No such\r\n550 5.1.1 user\r\n', 550, '5.1.1', 'No such\nuser'],
    ['550-5.1.1 No such\r\n550 user\r\n', 550, '5.1.1', 'No such\nuser'],
    ['550 #5.1.1 No such user\r\n', 550, '5.1.1', 'No such user'],
    ['550 #5.1.1: No such user\r\n', 550, '5.1.1', ': No such user'],
    ['550  5.1.1\r\n', 550, '5.1.1', ''],
    ['550 5.7.133 x\r\n', 550, '5.7.133', 'x'],
    ['250 a \r\r\n', 250, null, 'a'],
  ])('%j is one reply', (text, code, enhanced, said) => {
    expect(onlyReply(text)).toEqual({ code, enhanced, text: said })
  })

  test.each([
    ['550 4.1.1 x\r\n', 'a class that contradicts the code'],
    ['550 3.1.1 x\r\n', 'no class of RFC 3463'],
    ['550 5.1.1.1 x\r\n', 'four numbers, an address perhaps'],
    ['550 5.1111.1 x\r\n', 'four digits'],
    ['550 5.1 x\r\n', 'two numbers'],
    ['550 see 5.1.1 x\r\n', 'not at the beginning'],
    ['550-x\r\n550 5.1.1 x\r\n', 'not in the first line'],
  ])('%j has no enhanced code: %s', text => {
    expect(onlyReply(text)?.enhanced).toBeNull()
  })

  test('an enhanced code that is a prefix of another code stays in its line', () => {
    expect(onlyReply('550-5.1.1 a\r\n550 5.1.10 b\r\n')?.text).toBe('a\n5.1.10 b')
  })

  test('a line may end in a bare LF', () => {
    expect(read('250-a\n250 b\n').replies).toEqual([{ code: 250, enhanced: null, text: 'a\nb' }])
  })

  test('two replies in one chunk are two replies', () => {
    expect(read('250 a\r\n550 b\r\n').replies.map(({ code }) => code)).toEqual([250, 550])
  })

  test('an unterminated line is not a reply yet', () => {
    expect(read('250 Ok')).toEqual({ replies: [], fault: null, midway: true })
    expect(read('250-Ok\r\n')).toEqual({ replies: [], fault: null, midway: true })
    expect(read('250 Ok\r\n').midway).toBe(false)
  })

  test('a string chunk is treated as UTF-8', () => {
    expect(new ReplyReader().push('250 Grüße\r\n')[0]?.text).toBe('Grüße')
  })
})

describe('text', () => {
  test('is decoded as UTF-8 even if a chunk ends within a character', () => {
    const bytes = Buffer.from('550 ящик Р\r\n')
    for (let cut = 1; cut < bytes.length; cut++) {
      const { replies } = readAll([bytes.subarray(0, cut), bytes.subarray(cut)])
      expect(replies[0]?.text).toBe('ящик Р')
    }
  })

  test.each(['à', 'Р', 'voilà', 'на сервер Р\u00a0'])(
    'keeps the last octet of %j, which is a space in Latin-1',
    text => {
      expect(readAll([Buffer.from(`550 ${text}\r\n`)]).replies[0]?.text).toBe(text.trim())
    },
  )

  test('is decoded as Latin-1 if it is not valid UTF-8', () => {
    expect(onlyReply('550 Bo\xeete inconnue\r\n')?.text).toBe('Boîte inconnue')
    expect(onlyReply('550 \xff\xfe\xc3\r\n')?.text).toBe('ÿþÃ')
  })

  test('keeps NUL, escapes and 8-bit characters as sent', () => {
    expect(onlyReply('550 a\0b\x1b[31mc\r\n')?.text).toBe('a\0b\x1b[31mc')
  })
})

describe('data that is not SMTP', () => {
  test.each([
    ['2500 ok\r\n', 'four digits'],
    ['25\r\n', 'two digits'],
    ['25 ok\r\n', 'two digits'],
    ['\r\n', 'an empty line'],
    ['150 go on\r\n', '1xx, which SMTP does not have'],
    ['050 ok\r\n', '0xx'],
    ['650 ok\r\n', '6xx'],
    ['999 ok\r\n', '9xx'],
    [' 250 ok\r\n', 'a blank before the code'],
    ['\x00250 ok\r\n', 'a NUL before the code'],
    ['250\tok\r\n', 'a tab for the blank'],
    ['250_ok\r\n', 'no separator'],
    ['250\xa0ok\r\n', 'a no-break space for the blank'],
    ['٢٥٠ ok\r\n', 'digits of another script'],
    ['ok\r\n', 'no code'],
    ['<html>\r\n', 'another protocol'],
    ['SSH-2.0-x\r\n', 'another protocol'],
    ['250 a\rb\r\n', 'a CR within a line'],
    ['550 a\r250 b\r\n', 'a CR before what another reader takes for a reply'],
  ])('%j is a fault: %s', text => {
    const { replies, fault } = readAll([Buffer.from(text)])
    expect(replies).toEqual([])
    expect(fault).toBeTypeOf('string')
  })

  test('replies before the fault are returned, later data is ignored', () => {
    const reader = new ReplyReader()
    expect(reader.push('250 a\r\nwhat\r\n250 b\r\n').map(({ text }) => text)).toEqual(['a'])
    expect(reader.fault).toBe('a line that is not an SMTP reply')
    expect(reader.push('250 c\r\n')).toEqual([])
  })
})

describe('lines with different codes', () => {
  test.each<[string, Reply]>([
    // Postfix's postscreen drops a client.
    [
      '220-mx ESMTP\r\n521 5.7.1 Blocked\r\n',
      { code: 521, enhanced: '5.7.1', text: 'Blocked', firstCode: 220 },
    ],
    [
      '220-mx\r\n421 4.3.2 Busy\r\n',
      { code: 421, enhanced: '4.3.2', text: 'Busy', firstCode: 220 },
    ],
    ['250-mx\r\n250-SIZE\r\n550 no\r\n', { code: 550, enhanced: null, text: 'no', firstCode: 250 }],
    ['550-a\r\n250 b\r\n', { code: 250, enhanced: null, text: 'b', firstCode: 550 }],
    // Of one class, every line says something.
    [
      '550-5.2.1 Closed\r\n554 5.1.1 No such user\r\n',
      { code: 554, enhanced: '5.1.1', text: '5.2.1 Closed\nNo such user' },
    ],
    ['250-a\r\n251-b\r\n250 c\r\n', { code: 250, enhanced: null, text: 'a\nb\nc' }],
  ])('%j has the code of the last one', (text, reply) => {
    expect(onlyReply(text)).toEqual(reply)
  })

  test('are one reply, which is not complete before its last line', () => {
    const reader = new ReplyReader()
    expect(reader.push('220-mx ESMTP\r\n550-a\r\n')).toEqual([])
    expect(reader.midway).toBe(true)
    expect(reader.push('554 b\r\n250 c\r\n').map(({ code }) => code)).toEqual([554, 250])
  })
})

describe('limits', () => {
  const line = (octets: number, separator = ' ') => `250${separator}`.padEnd(octets, 'x')

  test('a line has at most 2,048 octets', () => {
    expect(read(`${line(2_048)}\r\n`).replies[0]?.text).toHaveLength(2_044)
    expect(read(`${line(2_049)}\r\n`)).toMatchObject({
      replies: [],
      fault: 'a line beyond 2048 bytes',
    })
  })

  test('multi-byte characters count by octets', () => {
    expect(readAll([Buffer.from(`250 ${'я'.repeat(1_022)}\r\n`)]).fault).toBeNull()
    expect(readAll([Buffer.from(`250 ${'я'.repeat(1_023)}\r\n`)]).fault).not.toBeNull()
  })

  test('an endless line is a fault before its end', () => {
    expect(read(line(2_050)).fault).toBe('a line beyond 2048 bytes')
  })

  test('a line of 2,048 octets may arrive before its LF', () => {
    const { replies, fault } = readAll([bytesOf(`${line(2_048)}\r`), bytesOf('\n')])
    expect(fault).toBeNull()
    expect(replies).toHaveLength(1)
  })

  test('a reply has at most 1,000 lines', () => {
    const lines = '250-x\r\n'
    expect(onlyReply(`${lines.repeat(999)}250 x\r\n`)?.text.split('\n')).toHaveLength(1_000)
    expect(read(`${lines.repeat(1_000)}250 x\r\n`).fault).toBe('a reply of more than 1000 lines')
  })

  test('a reply has at most 128 KiB, counted per reply', () => {
    // 64 lines of 2,048 octets, including CRLF.
    const full = `${`${line(2_046, '-')}\r\n`.repeat(63)}${line(2_046)}\r\n`
    expect(read(full.repeat(3)).replies).toHaveLength(3)
    const beyond = `${line(2_046, '-')}\r\n`.repeat(64)
    expect(read(`${beyond}250 x\r\n`).fault).toBe('a reply beyond 131072 bytes')
  })
})

describe('chunking', () => {
  const separator = fc.constantFrom(' ', '-', '', '_', '0')
  const code = fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(220, 250, 421, 450, 550) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 9_999 }) },
  )
  const words = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom('Ok', '5.1.1 No such user', '#4.2.1 later', 'я à') },
    { weight: 2, arbitrary: fc.string({ unit: anyCharacter, maxLength: 40 }) },
    { weight: 1, arbitrary: fc.integer({ min: 2_040, max: 2_052 }).map(n => 'x'.repeat(n)) },
  )
  const end = fc.constantFrom('\r\n', '\r\n', '\r\n', '\n', '\r', '')
  const lines = fc.array(fc.tuple(code, separator, words, end).map(deps => deps.join('')))
  const sane = fc.array(
    fc
      .tuple(fc.constantFrom('250-', '250 '), words, fc.constant('\r\n'))
      .map(deps => deps.join('')),
  )
  const stream = fc.oneof(sane, lines).map(deps => Buffer.from(deps.join('')))

  test('does not change the replies, down to one byte at a time', () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat(), { maxLength: 8 }), (bytes, cuts) => {
        const whole = readAll([bytes])
        const places = [0, ...cuts.map(cut => cut % (bytes.length + 1)), bytes.length]
        places.sort((a, b) => a - b)
        const chunks = places.slice(1).map((place, i) => bytes.subarray(places[i], place))
        const { replies, fault } = readAll(chunks)
        expect({ replies, fault }).toEqual({ replies: whole.replies, fault: whole.fault })
        const single = readAll([...bytes].map(byte => Uint8Array.of(byte)))
        expect({ replies: single.replies, fault: single.fault }).toEqual({ replies, fault })
      }),
      { numRuns: runs(1_000) },
    )
  })

  test('no input makes the reader throw or return a code outside 200 to 599', () => {
    let codes = 0
    fc.assert(
      fc.property(fc.array(fc.oneof(stream, fc.uint8Array({ maxLength: 200 }))), chunks => {
        for (const { code } of readAll(chunks).replies) {
          codes++
          expect(code).toBeGreaterThanOrEqual(200)
          expect(code).toBeLessThan(600)
        }
      }),
      { numRuns: runs(1_000) },
    )
    expect(codes).toBeGreaterThan(0)
  })
})
