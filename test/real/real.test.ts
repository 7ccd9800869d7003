import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { missingOf, REQUIRED, type RealHouse, startHouse } from './house.ts'
import { postfix } from './postfix.ts'
import { ask, casesOf, findingsOf, storyOf } from './table.ts'

// The engine against mail and DNS servers that others wrote, run from Debian packages on loopback: each row of
// fixtures/real is asked through the true engine, and gives this verdict with this evidence.

const SERVERS = [postfix]
const TABLES = ['dns', ...SERVERS.map(({ name }) => name)]
const missing = missingOf(SERVERS)

let house: RealHouse

describe.skipIf(missing !== null && !REQUIRED)(
  `real servers${missing ? ` (${missing})` : ''}`,
  () => {
    beforeAll(async () => {
      if (missing !== null) throw new Error(missing)
      house = await startHouse(SERVERS)
    }, 60_000)
    afterAll(() => house?.close())

    describe.each(TABLES)('%s', table => {
      test.concurrent.each(casesOf(table))('$name', { timeout: 60_000 }, async row => {
        const results = await ask(house, row)
        expect(results.map(({ email }) => email).toSorted()).toEqual(row.addresses.toSorted())
        for (const result of results)
          expect(findingsOf(result), storyOf(result)).toEqual(row.expected)
      })
    })
  },
)
