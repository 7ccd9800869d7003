import { describe, expect, test } from 'vitest'
import { EvClient } from '../../../src/client/client.ts'
import { onPostgres } from '../../support/database.ts'
import { mail } from '../../support/engine.ts'
import { scriptedMx } from '../../support/mx.ts'
import { tempPostgres } from '../../support/postgres-pool.ts'
import { recipientsOf, toRecipients, users } from '../../support/recipients.ts'
import { createWiredService } from '../../support/wired-service.ts'
import { zone } from '../../support/zone.ts'

const FOUR = users(4)
/** More addresses than are verified within the request, so that the list becomes a job. */
const LIST = users(11)
const [ANN] = FOUR as [string]

/** The complete service with a scripted mail server, and clients of two accounts. */
async function createFixture() {
  const mx = scriptedMx(
    toRecipients(to => (to.startsWith('user') ? '250 2.1.5 Ok' : '550 5.1.1 No such user')),
  )
  const { fetch, key, addAccount } = await createWiredService({
    resolver: zone(mail('a.test', '192.0.2.1')),
    dial: mx,
    settings: {
      allowRanges: '192.0.2.0/24',
      specialDomains: 'on',
      sessionsPerSecond: '1000',
      limits: 'off',
    },
    ...(onPostgres && { databaseUrl: await tempPostgres() }),
  })
  const clientFor = (apiKey: string) =>
    new EvClient({ apiKey, baseUrl: 'https://ev.example.com', fetch })
  return {
    client: clientFor(key),
    other: clientFor(await addAccount('acc_2')),
    /** How often the mail server was asked for each of these addresses. */
    asked: (emails: readonly string[]) => {
      const recipients = recipientsOf(mx.lines())
      return emails.map(email => recipients.filter(to => to === email).length)
    },
  }
}

/** Verifies addresses and returns their field `cached`. */
type Verify = (client: EvClient, emails: readonly string[]) => Promise<boolean[]>

/** The ways to verify addresses whose results tell whether they are cached. */
const WAYS: readonly [way: string, emails: readonly string[], verify: Verify][] = [
  [
    'one by one',
    FOUR,
    (client, emails) => oneByOne(emails, async email => (await client.verify.single(email)).cached),
  ],
  [
    'one by one, with their steps',
    FOUR,
    (client, emails) =>
      oneByOne(emails, async email => {
        const { cached } = await client.verify.single(email, { onStep: () => {} })
        return cached
      }),
  ],
  [
    'as a list within the request',
    FOUR,
    async (client, emails) => {
      const answer = await client.bulk(emails)
      if (!('instant' in answer)) throw new Error('The list became a job.')
      return answer.results.map(({ cached }) => cached)
    },
  ],
  [
    'as a job',
    LIST,
    async (client, emails) => {
      const { job_id } = await client.bulk(emails)
      await client.waitForJob(job_id)
      const cached: boolean[] = []
      for await (const row of client.jobs.results(job_id)) cached.push(row.cached as boolean)
      return cached
    },
  ],
]

async function oneByOne<T>(emails: readonly string[], ask: (email: string) => Promise<T>) {
  const all: T[] = []
  for (const email of emails) all.push(await ask(email))
  return all
}

const consumed = async (client: EvClient) => (await client.credits()).credits_consumed

const times = <T>(count: number, value: T): T[] => Array<T>(count).fill(value)

describe.each(WAYS)('addresses that are verified %s', (_, emails, verify) => {
  test('are cached and free right after their answers', async () => {
    const { client, asked } = await createFixture()
    const requests = emails === LIST ? [LIST] : emails.map(email => [email])
    for (const request of requests) {
      expect(await verify(client, request)).toEqual(times(request.length, false))
      expect(await verify(client, request)).toEqual(times(request.length, true))
    }
    expect(await consumed(client)).toBe(emails.length)
    expect(asked(emails)).toEqual(times(emails.length, 1))
  })

  test('are cached whatever way they are verified the next time', async () => {
    const { client, asked } = await createFixture()
    await verify(client, emails)
    for (const [, nextEmails, verifyNext] of WAYS) {
      const cached = await verifyNext(client, nextEmails)
      expect(cached.slice(0, FOUR.length)).toEqual(times(FOUR.length, true))
    }
    expect(asked(LIST)).toEqual(times(LIST.length, 1))
  })

  test('are verified again and charged for another account', async () => {
    const { client, other, asked } = await createFixture()
    await verify(client, emails)
    expect(await verify(other, emails)).toEqual(times(emails.length, false))
    expect(await verify(other, emails)).toEqual(times(emails.length, true))
    expect([await consumed(client), await consumed(other)]).toEqual(times(2, emails.length))
    expect(asked(emails)).toEqual(times(emails.length, 2))
  })

  test('share no request in flight with another account', async () => {
    const { client, other, asked } = await createFixture()
    const both = await Promise.all([verify(client, emails), verify(other, emails)])
    expect(both.flat()).toEqual(times(2 * emails.length, false))
    expect([await consumed(client), await consumed(other)]).toEqual(times(2, emails.length))
    expect(asked(emails)).toEqual(times(emails.length, 2))
  })
})

test('an address of a form is cached and free within its account only', async () => {
  const { client, other, asked } = await createFixture()
  for (const asking of [client, client, other, other]) await asking.verify.form(ANN)
  expect([await consumed(client), await consumed(other)]).toEqual([1, 1])
  await Promise.all([client.verify.form('user8@a.test'), other.verify.form('user8@a.test')])
  expect([await consumed(client), await consumed(other)]).toEqual([2, 2])
  expect(asked([ANN, 'user8@a.test'])).toEqual([2, 2])
})
