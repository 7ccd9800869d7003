import { expect, test } from 'vitest'
import { silentLog } from '../../../src/base/log.ts'
import { logNotify } from '../../../src/work/notify/log-notify.ts'

test('a notice is a line of the log with what matters of its mail, but not to whom it would go', async () => {
  const lines: unknown[] = []
  const log = { ...silentLog, warn: (...line: unknown[]) => void lines.push(line) }
  const mail = {
    ...{ to: 'owner@shop.example', subject: 'ev: 3 events', text: 'Twenty lines.' },
    brief: { steps: 'look' },
  }
  await logNotify(log).send(mail)
  expect(lines).toEqual([['ev: 3 events', { steps: 'look' }]])
})
