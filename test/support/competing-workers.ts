import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { emptyPostgres } from './pg-queue.ts'
import { ask } from './postgres-server.ts'

export type CompetingWorker = {
  readonly child: ChildProcess
  /** Keys whose leases were reported as lost. */
  readonly lost: string[]
  /** Closes the queue and ends the process. */
  end(): Promise<void>
}

/** Creates a database with an empty table `ledger`. */
export async function emptyLedger(): Promise<string> {
  const url = await emptyPostgres()
  await ask(
    url,
    `create table ledger (id serial primary key, key text not null, pid integer not null,
      began_at timestamptz not null, ended_at timestamptz)`,
  )
  onTestFinished(() => ask(url, 'drop table ledger').then(() => {}))
  return url
}

/** Starts a process that works on kind `k`; resolves when it is ready. */
export async function startCompetingWorker(
  url: string,
  { concurrency, runMs }: { concurrency: number; runMs: number },
): Promise<CompetingWorker> {
  const file = join(import.meta.dirname, 'competing-worker.ts')
  const child = fork(file, [url, String(concurrency), String(runMs)], { execArgv: [] })
  const lost: string[] = []
  child.on('message', (message: { lost?: string }) => {
    if (message.lost !== undefined) lost.push(message.lost)
  })
  const end = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.send('close')
    await exited
  }
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  })
  await once(child, 'message')
  return { child, lost, end }
}

export type Line = { readonly key: string; readonly pid: number; readonly open: boolean }

export const ledgerOf = (url: string) =>
  ask<Line>(url, 'select key, pid, ended_at is null as open from ledger order by id')

/**
 * Returns pairs of overlapping runs of one key; an unfinished run lasts until the end of its
 * process.
 */
export const twiceAtOnce = (url: string, ends: ReadonlyMap<number, Date> = new Map()) =>
  ask<{ key: string }>(
    url,
    `with run as (
      select id, key, began_at, coalesce(ended_at, e.at, 'infinity') as ended_at from ledger
      left join unnest($1::integer[], $2::timestamptz[]) as e (pid, at) on e.pid = ledger.pid)
    select a.key from run a join run b on a.key = b.key and a.id < b.id
    where a.began_at < b.ended_at and b.began_at < a.ended_at`,
    [[...ends.keys()], [...ends.values()]],
  )
