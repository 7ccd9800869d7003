import { createUsageLedger } from '../../src/accounts/credits/usage-ledger.ts'
import { mergePlans } from '../../src/accounts/plan.ts'
import { register } from '../../src/cluster/members.ts'
import { type Database, write } from '../../src/db/database.ts'
import { loadJob, queueLoaded } from '../../src/jobs/import/load-job.ts'
import {
  commitBatch,
  type ItemUpdate,
  type WriteDeps,
} from '../../src/jobs/results/commit-batch.ts'
import { silentLog } from '../../src/platform/log.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { createWebhook } from '../../src/webhooks/endpoint-store.ts'
import { addAccount } from './account-rows.ts'
import { claimItems } from './claims.ts'
import { fileAll } from './database.ts'
import { resultOf } from './result.ts'
import { twoServers } from './two-servers.ts'

export const PLANS = mergePlans({ free: { creditsPerDay: 1_000 } })
export const RESULT = resultOf('accepted_email')

/** Creates two servers with accounts that subscribe to all events. */
export async function createTwoServers(accounts: readonly string[] = ['acc_a']) {
  const servers = await twoServers()
  const { a } = servers
  for (const id of accounts) {
    await addAccount(a, id)
    const events = ['batch.completed', 'batch.failed', 'quota.warning', 'quota.exceeded'] as const
    await write(a, trx =>
      createWebhook(trx, {
        id: `wh_${id}`,
        accountId: id,
        url: 'https://hook.test/',
        active: true,
        events: [...events],
        description: null,
        secret: 's',
        secretHint: 's',
        createdAt: 0,
      }),
    )
  }
  return { ...servers, deps: { a: depsOf(servers.a), b: depsOf(servers.b) } }
}

export function depsOf(database: Database): WriteDeps {
  const { clock } = database
  const ledgerDeps = { database, clock, log: silentLog, random: systemRandom, plans: PLANS }
  return {
    database,
    ledger: createUsageLedger(ledgerDeps),
    random: systemRandom,
    baseUrl: 'https://ev.test',
  }
}

/** Creates a list with reserved credits and items claimed by a member; returns its job ID. */
export async function claimedList(
  database: Database,
  o: { accountId: string; rows: number; holder: string },
): Promise<string> {
  const submission = {
    accountId: o.accountId,
    keyId: 'key_a',
    type: 'batch' as const,
    name: null,
    sandbox: false,
    source: '{}',
    deduplicate: true,
  }
  const rows = Array.from({ length: o.rows }, (_, n) => ({ text: `u${n}@good.test` }))
  const loaded = await loadJob({ database, random: systemRandom }, submission, [rows], 1_000)
  if (loaded === null) throw new Error('too many')
  const now = database.clock.now()
  await write(database, trx => queueLoaded(trx, loaded, { now, creditsPerDay: 1_000 }))
  await fileAll(database, loaded.jobId)
  await claim(database, loaded.jobId, o.holder)
  return loaded.jobId
}

export async function claim(database: Database, jobId: string, holder: string): Promise<number> {
  return (await claimItems(database, { jobId, holder, max: 1_000 })).length
}

export const join = (database: Database, id: string) =>
  register(database, { id, role: 'worker', name: id, version: '1', egresses: [] })

/** Builds results for a range of rows. */
export const resultsOf = (holder: string, from: number, to: number): ItemUpdate => ({
  holder,
  results: Array.from({ length: to - from + 1 }, (_, n) => ({
    position: from + n,
    copies: 1,
    result: RESULT,
  })),
})

export const writeChanges = (deps: WriteDeps, changes: Record<string, readonly ItemUpdate[]>) =>
  commitBatch(deps, { changes: new Map(Object.entries(changes)), answers: new Map() })

/** Summarizes the database for all accounts and lists. */
export async function summarize(database: Database) {
  const { db } = database
  const jobs = await db.selectFrom('job').selectAll().orderBy('id').execute()
  const events = await db.selectFrom('event').select('kind').orderBy('kind').execute()
  const credits = await db.selectFrom('credit').selectAll().orderBy('account_id').execute()
  const usage = await db.selectFrom('usage').selectAll().execute()
  const history = await db.selectFrom('verification').select('id').execute()
  return {
    jobs: jobs.map(job => `${job.state} ${job.done}/${job.total} held ${job.held}`),
    events: events.map(({ kind }) => kind),
    credits: credits.map(({ account_id, used, held }) => `${account_id} used ${used} held ${held}`),
    verifications: usage.reduce((sum, row) => sum + row.verifications, 0),
    history: history.length,
  }
}

type Work = Parameters<ReturnType<Database['db']['transaction']>['execute']>[0]

/**
 * The database with lost confirmations: the next commits succeed, but the connection breaks before
 * the response.
 */
export function losingAnswers(database: Database, count = 1): Database {
  let left = count
  return withTransactions(database, async work => {
    const result = await database.db.transaction().execute(work)
    if (left-- <= 0) return result
    throw new Error('Connection terminated unexpectedly')
  })
}

/**
 * The database whose next transaction is rolled back, as its connection breaks before the commit.
 */
export function undoingOnce(database: Database): Database {
  let isDone = false
  return withTransactions(database, work =>
    database.db.transaction().execute(async trx => {
      const result = await work(trx)
      if (isDone) return result
      isDone = true
      throw new Error('Connection terminated unexpectedly')
    }),
  )
}

function withTransactions(database: Database, execute: (work: Work) => Promise<unknown>): Database {
  const db = new Proxy(database.db, {
    get(target, name) {
      if (name === 'transaction') return () => ({ execute })
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  return { ...database, db }
}
