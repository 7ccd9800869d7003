import { describe, expect, test } from 'vitest'
import { createRowObject, detectDialect } from '../../src/csv/csv.ts'
import { anyCharacter, fc } from '../support/property.ts'

const objectOf = (text: string, cells: readonly string[], header = true) =>
  createRowObject(detectDialect(Buffer.from(text), { complete: true, header }))(cells)

describe('a row as an object', () => {
  test('has its cells by column name, in column order', () => {
    const text = objectOf('name,email,2024,10\nAnn,a@one.test,5,6\n', ['Ann', 'a@one.test', '5'])
    expect(text).toBe('{"name":"Ann","email":"a@one.test","2024":"5","10":""}')
  })

  test.each([
    ['a repeated name', 'email,a,a,a', '"a":"2","a_2":"3","a_3":"4"'],
    ['a name with a number that is already taken', 'email,a,a,a_2', '"a":"2","a_3":"3","a_2":"4"'],
    ['blank names', 'email,, ,x', '"2":"2","3":"3","x":"4"'],
    ['a blank name with a number that is already taken', 'email,3,,x', '"3":"2","3_2":"3","x":"4"'],
    ['__proto__', 'email,__proto__,b,c', '"__proto__":"2","b":"3","c":"4"'],
  ])('distinguishes the columns: %s', (_, header, members) => {
    const text = objectOf(`${header}\na@one.test,2,3,4\n`, ['a@one.test', '2', '3', '4'])
    expect(text).toBe(`{"email":"a@one.test",${members}}`)
  })

  test('of a list without a header has numbers as names', () => {
    const cells = ['Ann', 'a@one.test']
    expect(objectOf('Ann,a@one.test\n', cells, false)).toBe('{"1":"Ann","2":"a@one.test"}')
  })

  test('keeps extra cells by their number', () => {
    const cells = ['a@one.test', 'A', 'x', 'y']
    const text = objectOf('email,4\na@one.test,A\n', cells)
    expect(text).toBe('{"email":"a@one.test","4":"A","3":"x","4_2":"y"}')
  })

  test('has no lone surrogate, which most JSON parsers reject', () => {
    expect(objectOf('email\na@one.test\n', ['\ud83d'])).toBe('{"email":"\ufffd"}')
  })

  test('with ten thousand columns of one name is fast', () => {
    const header = Array(10_000).fill('email').join(',')
    const before = process.threadCpuUsage()
    const text = objectOf(`${header}\na@one.test\n`, ['a@one.test'])
    // CPU time of this thread in microseconds, because other processes may be busy.
    expect(process.threadCpuUsage(before).user).toBeLessThan(2_000_000)
    expect(Object.keys(JSON.parse(text))).toHaveLength(10_000)
  })

  test('reads back with any names and cells', () => {
    // No name is a lone backslash: after one, JSON.parse of Node 24 misreads other keys (nodejs/node#63785).
    const names = fc.array(fc.constantFrom('', 'a', 'a_2', '1', '2', '"', '\0', 'é', '\u2028'), {
      minLength: 1,
    })
    const cells = fc.array(fc.string({ unit: anyCharacter }))
    fc.assert(
      fc.property(names, cells, (header, row) => {
        const dialect = detectDialect(Buffer.from('a@one.test\n'))
        const object = createRowObject({ ...dialect, header, width: header.length })(row)
        const values: unknown[] = Object.values(JSON.parse(object))
        const filled = Array.from({ length: Math.max(header.length, row.length) }, (_, i) =>
          (row[i] ?? '').toWellFormed(),
        )
        expect(values.sort()).toEqual(filled.sort())
      }),
    )
  })
})
