import { expect, test } from 'vitest'
import { updateAccount } from '../../../src/accounts/account-store.ts'
import { write } from '../../../src/db/database.ts'
import { parseNotify } from '../../../src/jobs/job-store.ts'
import { createUploadService, form } from '../../support/list-form.ts'

const EMAILS = Array.from({ length: 11 }, (_, n) => `user${n}@a.test`)

async function service(email: string | null) {
  const fixture = await createUploadService({ plan: 'enterprise' })
  const { request, send, database } = fixture
  await write(database, trx => updateAccount(trx, 'acc_1', { email }))
  const ask = {
    bulk: () => request('/v1/verify/bulk', { body: { emails: EMAILS, notify: true } }),
    batch: () => request('/v1/verify/batch', { body: { emails: EMAILS, notify: true } }),
    file: () =>
      send(
        form([
          ['notify', 'true'],
          ['file', { file: 'ann@a.test\n' }],
        ]),
      ),
  }
  return { ...fixture, ask }
}

test.each(['bulk', 'batch', 'file'] as const)(
  'notify of a %s is stored with the job',
  async kind => {
    const { ask, job, settled } = await service('owner@shop.example')
    expect((await settled(ask[kind]())).status).toBe(200)
    const stored = await job()
    expect(stored && parseNotify(stored)).toBe(true)
  },
)

test.each(['bulk', 'batch', 'file'] as const)(
  'notify of a %s is refused if the account has no address',
  async kind => {
    const { ask, job } = await service(null)
    const response = await ask[kind]()
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      code: 'invalid_request',
      error: expect.stringMatching(/^"notify" is true, but the account has no email address\./),
    })
    expect(await job()).toBeUndefined()
  },
)
