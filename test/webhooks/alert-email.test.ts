import { expect, test } from 'vitest'
import { alertEmail } from '../../src/webhooks/alert-email.ts'
import type { DueAlert } from '../../src/webhooks/alert-store.ts'

const NOTICE: DueAlert = {
  webhookId: 'wh_a',
  url: 'https://app.example:8443/hook?token=s3cret#part',
  accountId: 'acc_a',
  accountName: 'Shop',
  email: null,
  failedEvents: 3,
  lastError: 'The receiver answered 500, which is not 2xx.',
  disabledReason: null,
  dueAt: 0,
}
const PLACE = { baseUrl: 'https://ev.example', now: Date.UTC(2026, 5, 30, 12) }

const mail = (notice: Partial<DueAlert> = {}) =>
  alertEmail({ ...NOTICE, ...notice }, 'ops@example.com', PLACE)

test('names the webhook, the number of failed events, the reason and the steps to take', () => {
  expect(mail()).toEqual({
    to: 'ops@example.com',
    subject: 'ev: 3 events could not be delivered to app.example:8443 (wh_a)',
    text: `Webhook wh_a of account acc_a "Shop":

  https://app.example:8443/hook

3 events could not be delivered since the last alert. They are not retried automatically.

Last error: The receiver answered 500, which is not 2xx.

What to do (with the CLI, or over HTTP with an API key):

- List the failed deliveries.
    ev webhooks deliveries wh_a --status failed
    GET https://ev.example/v1/webhooks/wh_a/deliveries?status=failed

- Fix the receiver and send a test event.
    ev webhooks test wh_a
    POST https://ev.example/v1/webhooks/wh_a/test

- Retry the failed deliveries.
    ev webhooks retry --since 2026-06-16 wh_a
    POST https://ev.example/v1/webhooks/wh_a/recover {"since": "2026-06-16T00:00:00Z"}

Failed deliveries are kept for 7 days and can be retried until then.
`,
    brief: {
      webhookId: 'wh_a',
      accountId: 'acc_a',
      disabledReason: undefined,
      lastError: 'The receiver answered 500, which is not 2xx.',
      steps:
        'ev webhooks deliveries wh_a --status failed · ev webhooks retry --since 2026-06-16 wh_a',
    },
  })
})

test('names the reason why a webhook was disabled, and enables it before anything is sent', () => {
  const { subject, text, brief } = mail({
    failedEvents: 1,
    disabledReason: 'It answered 410 Gone.',
  })
  expect(subject).toBe(
    'ev: the webhook to app.example:8443 was disabled, 1 event could not be delivered (wh_a)',
  )
  expect(text).toContain('1 event could not be delivered since')
  expect(text).toContain(
    'The webhook was disabled. It answered 410 Gone.\nNothing is sent to it until',
  )
  const order = ['- List', '- Fix', '- Enable', '- Retry'].map(step => text.indexOf(step))
  expect(order).toEqual(order.toSorted((a, b) => a - b))
  expect(order[0]).toBeGreaterThan(0)
  expect(text).toContain('    ev webhooks enable wh_a\n')
  expect(brief).toMatchObject({
    disabledReason: 'It answered 410 Gone.',
    steps: expect.stringMatching(/ · ev webhooks enable wh_a · ev webhooks retry /),
  })
  expect(text).toContain('PATCH https://ev.example/v1/webhooks/wh_a {"active": true}')
})

test('reports a disabled webhook without failed events as just that', () => {
  const { subject, text } = mail({ failedEvents: 0, lastError: null, disabledReason: 'Why.' })
  expect(subject).toBe('ev: the webhook to app.example:8443 was disabled (wh_a)')
  expect(text).not.toMatch(/0 events|could not be delivered|Last error/)
})

test('contains nothing of the query of the URL, which may be a secret', () => {
  const { subject, text, brief } = mail()
  expect(subject + text + JSON.stringify(brief)).not.toMatch(/s3cret|token|part/)
})

test('untrusted text is one line without control characters for terminals or mail readers', () => {
  const evil = 'a\r\nBcc: eve@evil.example\u001b[2J\u202e'
  const { subject, text, brief } = mail({
    accountName: evil,
    lastError: evil,
    disabledReason: evil,
    url: 'https://app.example/%0D%0ABcc:eve',
  })
  expect(subject).toMatch(/^[^\r\n]*$/)
  expect(text).not.toMatch(/^Bcc/m)
  expect(subject + text).not.toMatch(/[\u001b\u202e\r]/)
  expect(Object.values(brief).join()).not.toMatch(/[\u001b\u202e\r\n]/)
})

test('long texts are truncated', () => {
  const long = 'x'.repeat(100_000)
  const { text } = mail({ lastError: long, disabledReason: long, accountName: long })
  expect(text.length).toBeLessThan(4_000)
})
