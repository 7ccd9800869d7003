import { expect, test } from 'vitest'
import { createQueuedListDashboard, EVIL, EVIL_SHOWN } from './room.ts'

test('markup in an address is rendered as text among the rows', async () => {
  const { page } = await createQueuedListDashboard([`"${EVIL}"@a.example`])
  const { text } = await page()
  expect(text).toContain(EVIL_SHOWN)
  expect(text).not.toContain(EVIL)
})
