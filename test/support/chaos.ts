import { setTimeout as wait } from 'node:timers/promises'
import { addressesOf, type List, reasonOf } from './list-simulator.ts'
import type { ProcessCluster, Role, Unit } from './process-cluster.ts'
import { xorshift } from './random.ts'

export type ChaosPlan = {
  readonly list: List
  /** Number of such lists, submitted one after another. */
  readonly lists: number
  readonly servers: number
  readonly workers: number
  readonly kills: number
  /** Interval between two kills. */
  readonly everyMs: number
  readonly seed: number
}

/** The final state of the database and the counters of the simulator. */
export type Ledger = {
  readonly jobs: readonly {
    readonly state: string
    readonly done: number
    readonly total: number
  }[]
  /** Rows whose result is missing or differs from that of the simulator. */
  readonly wrongRows: number
  readonly history: number
  readonly events: number
  readonly deliveries: number
  readonly creditsUsed: number
  readonly creditsHeld: number
  /** Peak number of sessions at one host. */
  readonly sessionsPeak: number
  /** Recipients that were probed more than once. */
  readonly askedAgain: number
  readonly seconds: number
}

/** Processes lists while one process after another is killed with SIGKILL and restarted. */
export async function runChaos(cluster: ProcessCluster, plan: ChaosPlan): Promise<Ledger> {
  const startedAt = performance.now()
  const units: Unit[] = []
  for (let n = 0; n < plan.servers; n++) units.push(await cluster.start('serve', `server${n}`))
  for (let n = 0; n < plan.workers; n++) units.push(await cluster.start('worker', `worker${n}`))
  const [server] = units as [Unit, ...Unit[]]
  await cluster.client(server).webhooks.create(HOOK)
  const jobs = await submit(cluster, server, plan)
  const random = xorshift(plan.seed)
  for (let kills = 0; kills < plan.kills; kills++) {
    await wait(plan.everyMs)
    const at = Math.floor(random() * units.length)
    const { role, name } = units[at] as { role: Role; name: string }
    await (units[at] as Unit).end('SIGKILL')
    units[at] = cluster.begin(role, name)
  }
  await untilFinished(cluster, jobs)
  await untilSettled(cluster)
  return { ...(await ledgerOf(cluster, plan)), seconds: (performance.now() - startedAt) / 1_000 }
}

/** Subscribes to its completion and submits a list; returns the ID of its job. */
export async function submitOne(
  cluster: ProcessCluster,
  server: Unit,
  list: List,
): Promise<string> {
  const client = cluster.client(server)
  await client.webhooks.create(HOOK)
  const [job] = await submit(cluster, server, { list, lists: 1 })
  return job ?? ''
}

async function submit(
  cluster: ProcessCluster,
  server: Unit,
  { list, lists }: Pick<ChaosPlan, 'list' | 'lists'>,
): Promise<string[]> {
  const jobs: string[] = []
  for (let n = 0; n < lists; n++) {
    const file = new Blob([['email', ...addressesOf(list)].join('\n')], { type: 'text/csv' })
    const { job_id } = await cluster.client(server).file(file, { filename: `list${n}.csv` })
    jobs.push(job_id)
  }
  return jobs
}

export async function untilFinished(
  cluster: ProcessCluster,
  jobs: readonly string[],
): Promise<void> {
  for (;;) {
    const [row] = await cluster.ask<{ open: string }>(
      'select count(*) as open from job where finished_at is null and id = any($1)',
      [jobs],
    )
    if (Number(row?.open) === 0) return
    await wait(200)
  }
}

/**
 * Waits until reservations of single verifications are released, which happens when the death of
 * their process is detected.
 */
async function untilSettled(cluster: ProcessCluster): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    const [row] = await cluster.ask<{ held: string }>(
      'select coalesce(sum(held), 0) as held from credit',
    )
    if (Number(row?.held) === 0) return
    await wait(200)
  }
}

export async function ledgerOf(
  cluster: ProcessCluster,
  { list }: Pick<ChaosPlan, 'list'>,
): Promise<Omit<Ledger, 'seconds'>> {
  const jobs = await cluster.ask<{ state: string; done: string; total: string }>(
    'select state, done, total from job order by created_at',
  )
  const rows = await cluster.ask<{ position: string; reason: string | null }>(
    `select position, result::json #>> '{verdict,reason}' as reason from item`,
  )
  const [counts] = await cluster.ask<Record<Counted, string>>(`select
    (select count(*) from verification) as history, (select count(*) from event) as events,
    (select count(*) from delivery) as deliveries,
    (select coalesce(sum(used), 0) from credit) as used,
    (select coalesce(sum(held), 0) from credit) as held`)
  const { hosts, total } = await cluster.world.counters()
  const asked = addressesOf(list).map(address => total.recipients.get(address) ?? 0)
  return {
    jobs: jobs.map(({ state, done, total }) => ({
      state,
      done: Number(done),
      total: Number(total),
    })),
    wrongRows: rows.filter(
      ({ position, reason }) => reason !== reasonOf(list, Number(position) - 1),
    ).length,
    history: Number(counts?.history),
    events: Number(counts?.events),
    deliveries: Number(counts?.deliveries),
    creditsUsed: Number(counts?.used),
    creditsHeld: Number(counts?.held),
    sessionsPeak: Math.max(...Object.values(hosts).map(({ sessionsPeak }) => sessionsPeak)),
    askedAgain: asked.reduce((sum, times) => sum + Math.max(0, times - 1), 0),
  }
}

type Counted = 'history' | 'events' | 'deliveries' | 'used' | 'held'

const HOOK = { url: 'https://127.0.0.1:8443/hook', events: ['batch.completed' as const] }
