import { expect, test } from 'vitest'
import { DEFAULT_JOB_MAIL_TIMINGS } from '../../../src/jobs/job-mails.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { shiftedClock } from '../../support/clock.ts'
import { createUploadService, FORM, form } from '../../support/list-form.ts'
import { fakeNotify } from '../../support/notify.ts'
import { waitUntil } from '../../support/wait.ts'
import { createWiredService } from '../../support/wired-service.ts'

// These rows aren't addresses, so ev contacts no mail server for them.
const EMAILS = Array.from({ length: 11 }, (_, n) => `row ${n}`)
const JSON_TYPE = 'application/json'

/** A request for a list with a mail at its end, by kind. */
const REQUESTS = {
  bulk: { type: JSON_TYPE, body: JSON.stringify({ emails: EMAILS, notify: true }) },
  batch: { type: JSON_TYPE, body: JSON.stringify({ emails: EMAILS, notify: true }) },
  file: {
    type: FORM,
    body: form([
      ['notify', 'true'],
      ['file', { file: `email\n${EMAILS.join('\n')}\n` }],
    ]),
  },
}

test.each(['bulk', 'batch', 'file'] as const)(
  'with notify, the end of a %s is mailed to the account',
  async kind => {
    const notify = fakeNotify()
    const clock = shiftedClock(systemClock)
    const timings = { jobMails: { ...DEFAULT_JOB_MAIL_TIMINGS, pollMs: 20 } }
    const { fetch, key } = await createWiredService({ clock, notify, timings })
    const send = (path: string, method: string, type: string, body: string | Uint8Array) =>
      fetch(`https://ev.example.com${path}`, {
        method,
        headers: { Authorization: `Bearer ${key}`, 'Content-Type': type },
        body: body as string,
      })
    const owner = JSON.stringify({ email: 'owner@shop.example' })
    expect((await send('/v1/account', 'PATCH', JSON_TYPE, owner)).status).toBe(200)
    // Changes of an account apply within a second.
    clock.pass(1_000)
    const { type, body } = REQUESTS[kind]
    expect((await send(`/v1/verify/${kind}`, 'POST', type, body)).status).toBe(200)
    await waitUntil(() => notify.sent.length > 0)
    expect(notify.sent).toMatchObject([{ to: 'owner@shop.example' }])
  },
)

test.each(['bulk', 'batch', 'file'] as const)(
  'notify of a %s is refused if the account has no address',
  async kind => {
    const { request, job } = await createUploadService()
    const { type, body } = REQUESTS[kind]
    const response = await request(`/v1/verify/${kind}`, {
      body,
      headers: { 'Content-Type': type },
    })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      code: 'invalid_request',
      error: expect.stringMatching(/^"notify" is true, but the account has no email address\./),
    })
    expect(await job()).toBeUndefined()
  },
)
