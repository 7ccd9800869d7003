import { expect, test } from 'vitest'
import { addHistory } from '../../src/accounts/credits/history.ts'
import { write } from '../../src/db/database.ts'
import { SCANNED_MAX } from '../../src/db/paging.ts'
import { verificationRow } from '../support/account-rows.ts'
import { createTestDashboard } from '../support/dashboard.ts'

// Verifying so many addresses takes minutes, so their rows are written directly.

test('a long search of the history reports that it continues further back', async () => {
  const { database, clock, get } = await createTestDashboard()
  const rows = Array.from({ length: SCANNED_MAX + 1 }, (_, n) =>
    verificationRow({
      id: `ver_${String(n).padStart(9, '0')}`,
      created_at: clock.now(),
      email: n === 0 ? 'eve@a.test' : 'ann@a.test',
    }),
  )
  await write(database, trx => addHistory(trx, rows))
  const { text } = await get('/usage?search=eve')
  expect(text).toContain('No matches so far. The history goes back further.')
  const [, further = ''] = /href="([^"#]*)[^"]*">Search further back</.exec(text) ?? []
  expect((await get(further.replaceAll('&amp;', '&'))).text).toContain(
    '<th scope="row">eve@a.test</th>',
  )
})
