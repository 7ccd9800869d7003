import { describe, expect, test } from 'vitest'
import { countImportedRows, ImportCounter } from '../../../src/jobs/import/import-counter.ts'
import { countedRandom } from '../../support/random.ts'

const TEXTS = ['ann@a.test', ' Ann <ann@A.TEST> ', 'no address', 'no address', 'bob@a.test']

const countRows = (deduplicate: boolean) => {
  const counter = new ImportCounter({ deduplicate, random: countedRandom() })
  const rows = TEXTS.map(text => counter.add(text))
  const { total, malformed, duplicates, addressCount } = counter
  const repeated = [...counter.repeated()]
  return {
    sameAs: rows.map(row => row.duplicateOf),
    total,
    malformed,
    duplicates,
    addressCount,
    repeated,
  }
}

describe('the rows of a list', () => {
  test('are counted while read; duplicates are verified once', () => {
    expect(countRows(true)).toEqual({
      sameAs: [null, 1, null, 3, null],
      total: 5,
      malformed: 2,
      duplicates: 2,
      addressCount: 2,
      repeated: [
        { position: 1, copies: 2 },
        { position: 3, copies: 2 },
      ],
    })
  })

  test('are each verified if duplicates are not merged', () => {
    expect(countRows(false)).toEqual({
      sameAs: [null, null, null, null, null],
      total: 5,
      malformed: 2,
      duplicates: 0,
      addressCount: 3,
      repeated: [],
    })
  })

  test('are not read further after an abort, and their file is closed', async () => {
    const abort = new AbortController()
    let read = 0
    let isClosed = false
    async function* batches() {
      try {
        for (;;) {
          if (++read === 3) abort.abort()
          yield [{ text: `ann${read}@a.test` }]
        }
      } finally {
        isClosed = true
      }
    }
    const o = { deduplicate: true, random: countedRandom(), signal: abort.signal }
    expect((await countImportedRows(batches(), o)).total).toBe(2)
    expect([read, isClosed]).toEqual([3, true])
  })
})
