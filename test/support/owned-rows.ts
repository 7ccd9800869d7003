import { addHistory } from '../../src/accounts/credits/history.ts'
import { addUsage } from '../../src/accounts/credits/usage.ts'
import { insertPerson } from '../../src/accounts/people/person-store.ts'
import { write } from '../../src/db/database.ts'
import { insertSource } from '../../src/feedback/source-store.ts'
import { insertSchedule } from '../../src/jobs/schedules/schedule-store.ts'
import { createWebhook } from '../../src/webhooks/endpoint-store.ts'
import { emit } from '../../src/webhooks/event-store.ts'
import { verificationRow } from './account-rows.ts'
import { seedJob } from './job-rows.ts'
import type { createTestService } from './service.ts'

type TestService = Pick<
  Awaited<ReturnType<typeof createTestService>>,
  'database' | 'clock' | 'random'
>

export const WEBHOOK = {
  url: 'https://app.test/',
  active: true,
  events: ['batch.completed' as const],
  description: null,
  secret: 'sealed',
  secretHint: 'LaSw',
  createdAt: 0,
}

/**
 * Adds one of everything to the first account: `job_a`, `wh_a`, `per_a`, `ver_a`, and a delivery, whose ID
 * is returned.
 */
export async function addOneOfEverything({
  database,
  clock,
  random,
}: TestService): Promise<string> {
  await seedJob(database, { texts: ['valid@a.example'] })
  const now = clock.now()
  return write(database, async trx => {
    await createWebhook(trx, { ...WEBHOOK, id: 'wh_a', accountId: 'acc_1' })
    await insertPerson(trx, {
      id: 'per_a',
      account_id: 'acc_1',
      name: 'Ann',
      email: 'ann@a.example',
      role: 'member',
      created_at: now,
      invitation_hash: null,
      invitation_expires_at: null,
      password: null,
      totp_secret: 'sealed',
      totp_step: null,
      oidc_issuer: null,
      oidc_subject: null,
      last_signed_in_at: null,
    })
    await insertSource(trx, {
      id: 'fbs_a',
      account_id: 'acc_1',
      provider: 'ses',
      secret: '',
      key_hint: '',
      created_at: now,
      last_received_at: null,
    })
    await insertSchedule(trx, {
      id: 'sch_a',
      account_id: 'acc_1',
      key_id: 'key_1',
      sandbox: 0,
      notify: 0,
      job_id: 'job_a',
      latest_job_id: 'job_a',
      every_days: 30,
      classes: null,
      older_than_days: null,
      next_run_at: now,
      claimed_until: null,
      last_run_at: null,
      last_error: null,
      created_at: now,
    })
    const happened = { accountId: 'acc_1', data: {}, sandbox: false, now, dueAt: now, random }
    await emit(trx, { ...happened, kind: 'batch.completed' })
    await addHistory(trx, [verificationRow({ id: 'ver_a', created_at: now })])
    const day = now - (now % 86_400_000)
    const used = { verifications: 3, cached: 0, credits: 3 }
    await addUsage(trx, [
      { account_id: 'acc_1', key_id: 'key_1', day, class: 'deliverable', ...used },
    ])
    return (await trx.selectFrom('delivery').select('id').executeTakeFirstOrThrow()).id
  })
}
