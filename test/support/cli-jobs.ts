import { expect } from 'vitest'
import { folderWith, type Ran } from './home.ts'

export type JobObject = Readonly<Record<string, unknown>> & {
  job_id: string
  state: string
  done: number
}

type RunEv = (
  args: readonly string[],
  options: { readonly home: string; readonly offline: boolean },
) => Promise<Ran>

/** Returns functions that run `ev jobs` in a folder. `runEv` runs it, here or in a child process. */
export function jobCommands(runEv: RunEv) {
  const jobs = (home: string, ...args: string[]) =>
    runEv(['jobs', ...args, '--data-dir', 'data'], { home, offline: true })
  const listed = async (home: string): Promise<JobObject[]> =>
    JSON.parse((await jobs(home, 'list', '--json')).stdout)
  /** Returns the only job. */
  async function only(home: string): Promise<JobObject> {
    const all = await listed(home)
    expect(all).toHaveLength(1)
    return all[0] as JobObject
  }
  return { jobs, listed, only }
}

/** Creates a folder with a list. */
export const homeWith = (list: string): string => folderWith({ 'list.csv': list })

/** Returns a list of addresses of a domain, of which every tenth is unknown. */
export function listAt(domain: string, rows: number): string {
  const names = Array.from({ length: rows }, (_, n) => `${n % 10 === 3 ? 'gone' : 'user'}${n}`)
  return names.map(name => `${name}@${domain}\n`).join('')
}

/** Five addresses per second, so that the job is unfinished when the test reads it. */
export const SLOW = [
  ...['--sessions-per-operator', '1', '--sessions-per-second', '1'],
  ...['--recipients-per-session', '5'],
]
