import { expect, onTestFinished, test } from 'vitest'
import { readCredit, reserveCredits } from '../../src/accounts/credits/credit-store.ts'
import { createUsageLedger } from '../../src/accounts/credits/usage-ledger.ts'
import { findPlan, mergePlans, periodStart } from '../../src/accounts/plan.ts'
import { register } from '../../src/cluster/members.ts'
import { startReservationCheck } from '../../src/jobs/job-credits.ts'
import { DAY, SECOND } from '../../src/platform/clock.ts'
import { silentLog } from '../../src/platform/log.ts'
import { addAccount } from '../support/account-rows.ts'
import { fakeClock } from '../support/clock.ts'
import { addJob, onPostgres, tempDatabase } from '../support/database.ts'
import { countedRandom } from '../support/random.ts'
import { resultOf } from '../support/result.ts'
import { waitUntil } from '../support/wait.ts'

const PLANS = mergePlans({ free: { creditsPerDay: 100 } })
const FREE = findPlan(PLANS, 'free')

/** A process with its check; on PostgreSQL it is a member of a cluster. */
async function createProcess() {
  const clock = fakeClock()
  const database = await tempDatabase({ clock })
  await addAccount(database, 'acc_a', 'free')
  const member = onPostgres ? 'mem_a' : null
  for (const id of ['mem_a', 'mem_b']) {
    await register(database, { id, role: 'serve', name: id, version: '1', egresses: [] })
  }
  const warnings: unknown[] = []
  const log = {
    ...silentLog,
    warn: (text: string, fields = {}) => void warnings.push([text, fields]),
  }
  const ledger = createUsageLedger({
    database,
    clock,
    log,
    random: countedRandom(),
    plans: PLANS,
    member: () => member,
  })
  const check = startReservationCheck({ database, ledger, log, member: () => member })
  onTestFinished(() => check.stop())
  const period = periodStart(clock.now())
  const credit = (of = period) => readCredit(database, 'acc_a', of)
  return {
    clock,
    database,
    ledger,
    warnings,
    period,
    /** Reserves without a record of it, as when the acknowledgment is lost. */
    leak: (amount: number, of = { member, period }) =>
      reserveCredits(database.db, { accountId: 'acc_a', amount, limit: 1_000, ...of }),
    held: async (of?: number) => (await credit(of)).held,
    /** Lets the check run once. */
    async pass() {
      await waitUntil(() => clock.pending > 0)
      await clock.advance(10 * SECOND)
      await waitUntil(() => clock.pending > 0)
    },
  }
}

test('credits whose reservation was not acknowledged are released; those in flight and of jobs stay', async () => {
  const { database, ledger, leak, held, pass, warnings, period } = await createProcess()
  const inFlight = await ledger.reserve('acc_a', FREE, 3)
  if (!('amount' in inFlight)) throw new Error('there are no credits left')
  await addJob(database, ['a@x.test'], 'job_a')
  await reserveCredits(database.db, { accountId: 'acc_a', amount: 2, period, limit: null })
  const job = { account_id: 'acc_a', credit_period: period, held: 2 }
  await database.db.updateTable('job').set(job).where('id', '=', 'job_a').execute()
  await leak(7)
  expect(await held()).toBe(12)
  await pass()
  expect(await held()).toBe(5)
  expect(warnings).toEqual([['credits held for no verification released', { released: 7 }]])
  await ledger.settle({
    accountId: 'acc_a',
    keyId: 'key_a',
    source: 'single',
    sandbox: false,
    reservation: inFlight,
    entry: { result: resultOf('accepted_email') },
  })
  await pass()
  expect(await held()).toBe(2)
  expect(warnings).toHaveLength(1)
})

test('credits of an earlier day are released too', async () => {
  const { leak, held, pass, period } = await createProcess()
  const member = onPostgres ? 'mem_a' : null
  await leak(4, { member, period: period - DAY })
  await pass()
  expect(await held(period - DAY)).toBe(0)
})

test('a verification that is given up, or settled by its caller, is in flight no more', async () => {
  const { ledger, held, pass } = await createProcess()
  const [first, second] = [
    await ledger.reserve('acc_a', FREE, 1),
    await ledger.reserve('acc_a', FREE, 1),
  ]
  if (!('amount' in first && 'amount' in second)) throw new Error('there are no credits left')
  ledger.giveBack('acc_a', first)
  await ledger.flushed()
  expect(await held()).toBe(1)
  // Its caller said so, but the transaction was lost.
  ledger.settled('acc_a', second)
  await pass()
  expect(await held()).toBe(0)
})

test.runIf(onPostgres)('what other members hold stays until they expire', async () => {
  const { database, leak, held, pass, period } = await createProcess()
  await leak(5, { member: 'mem_b', period })
  await pass()
  expect(await held()).toBe(5)
  await database.db.deleteFrom('member').where('id', '=', 'mem_b').execute()
  await leak(1)
  await pass()
  expect(await held()).toBe(0)
})
