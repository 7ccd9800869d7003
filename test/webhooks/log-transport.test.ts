import { expect, test } from 'vitest'
import { createLogTransport } from '../../src/webhooks/mail-transport.ts'
import { recordingLog } from '../support/log.ts'

test('an alert is a log line with the relevant fields of its mail, without the recipient', async () => {
  const { log, lines } = recordingLog()
  const mail = {
    to: 'owner@shop.example',
    subject: 'ev: 3 events',
    text: 'Twenty lines.',
    brief: { steps: 'look' },
  }
  await createLogTransport(log).send(mail)
  expect(lines).toEqual([{ level: 'warn', message: 'ev: 3 events', fields: { steps: 'look' } }])
})
