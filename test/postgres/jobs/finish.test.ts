import { expect, test } from 'vitest'
import { finishJob } from '../../../src/jobs/change-job.ts'
import { readJob } from '../../../src/jobs/job-store.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { systemRandom } from '../../../src/platform/random.ts'
import { cluster } from '../../support/cluster-jobs.ts'
import { toRecipients } from '../../support/engine.ts'
import { waitUntil } from '../../support/wait.ts'

const GREYLISTED = '450 4.2.0 Greylisted, try again in 300 seconds'
const OK = '250 2.1.5 Ok'
const UNKNOWN = '550 5.1.1 No such user'

const reply = (to: string) =>
  to.startsWith('gray') ? GREYLISTED : to.startsWith('user') ? OK : UNKNOWN

const users = (name: string, count: number) =>
  Array.from({ length: count }, (_, n) => `${name}${n}@d${n % 4}.test`)

type Cluster = Awaited<ReturnType<typeof cluster>>

const finish = async ({ database }: Cluster, id: string) => {
  const origin = { actor: 'key', keyId: 'key_1', person: null, sessionId: null, ip: null } as const
  const services = { database, clock: systemClock, random: systemRandom, origin }
  return finishJob(services, await readJob(database, id))
}

test('a job is finished by all members together, with one result for each row and one event', async () => {
  const home = await cluster({ script: toRecipients(reply), domains: 4 })
  await home.join()
  await home.join()
  const texts = [...users('user', 40), ...users('gray', 400)]
  await home.submit('job_1', texts)
  await home.until('job_1', ({ done }) => done >= 40)
  await Promise.all([finish(home, 'job_1'), finish(home, 'job_1')])
  expect(await home.finished('job_1')).toMatchObject({
    state: 'completed',
    done: 440,
    deliverable: 40,
    unknown: 400,
  })
  const reasons = await home.reasons('job_1')
  expect(reasons.slice(0, 40)).toEqual(Array(40).fill('accepted_email'))
  // Those that no connection has claimed yet are not probed.
  for (const reason of reasons.slice(40)) expect(reason).toMatch(/^(greylisted|smtp_skipped)$/)
  expect(await home.history()).toHaveLength(440)
  expect(await home.events()).toHaveLength(1)
})

test('a row in flight at one member keeps its own result while another finishes the job', async () => {
  const released = Promise.withResolvers<void>()
  const script = toRecipients(reply)
  const home = await cluster({
    script: async (line, session) => {
      if (line.startsWith('RCPT TO:<user')) await released.promise
      return script(line, session)
    },
    domains: 4,
  })
  const member = await home.join()
  await home.submit('job_1', ['user1@d0.test', 'gray1@d1.test'])
  await waitUntil(() => member.mx.lines().some(line => line.includes('user1@d0.test')))
  await home.join()
  await finish(home, 'job_1')
  await home.until('job_1', ({ done }) => done === 1)
  // Jobs are finished one after the other, so the pass for the first one has ended.
  await home.submit('job_2', ['gray2@d2.test'])
  await finish(home, 'job_2')
  expect(await home.finished('job_2')).toMatchObject({ state: 'completed' })
  expect(await readJob(home.database, 'job_1')).toMatchObject({ state: 'processing', done: 1 })
  released.resolve()
  expect(await home.finished('job_1')).toMatchObject({ state: 'completed', deliverable: 1 })
  expect((await home.reasons('job_1'))[0]).toBe('accepted_email')
})

test('a job whose member has gone is finished by the next one', async () => {
  const home = await cluster({ script: toRecipients(reply), domains: 4 })
  const first = await home.join()
  await home.submit('job_1', users('gray', 100))
  await waitUntil(async () => {
    const postponed = home.database.db.selectFrom('item').where('latest_result', 'is not', null)
    return (await postponed.select('position').execute()).length === 100
  })
  await first.close()
  await finish(home, 'job_1')
  await home.join()
  expect(await home.finished('job_1')).toMatchObject({ state: 'completed', unknown: 100 })
  expect(new Set(await home.reasons('job_1'))).toEqual(new Set(['greylisted']))
  expect(await home.events()).toHaveLength(1)
})
