import { expect, test } from 'vitest'
import { createLogTransport } from '../../../src/webhooks/alerts/mail-transport.ts'
import { recordingLog } from '../../support/log.ts'

test('a notice is a line of the log with what matters of its mail, but not to whom it would go', async () => {
  const { log, lines } = recordingLog()
  const mail = {
    ...{ to: 'owner@shop.example', subject: 'ev: 3 events', text: 'Twenty lines.' },
    brief: { steps: 'look' },
  }
  await createLogTransport(log).send(mail)
  expect(lines).toEqual([{ level: 'warn', message: 'ev: 3 events', fields: { steps: 'look' } }])
})
