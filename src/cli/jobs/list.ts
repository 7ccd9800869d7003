import { listJobs } from '../../store/job/job-list.ts'
import { type Job, progressOf } from '../../store/job/jobs.ts'
import { openKept } from '../database.ts'
import { readConfig } from '../settings/settings.ts'
import { type Column, table } from '../text/table.ts'
import { jobObject } from './job-object.ts'
import { placesOf, type Standing, standingOf } from './kept-job.ts'
import { timeText } from './time-text.ts'

export type ListFlags = { readonly json?: boolean; readonly [setting: string]: unknown }

/** `ev jobs list`: gives the code to exit with. */
export async function listCommand(flags: ListFlags): Promise<number> {
  const config = readConfig(flags)
  const database = await openKept(config)
  try {
    const jobs = database === null ? [] : await listJobs(database)
    const standing = jobs.map(job => [job, standingOf(job, config)] as const)
    if (flags.json) {
      const objects = standing.map(([job, state]) => jobObject(job, state))
      process.stdout.write(`${JSON.stringify(objects, null, 2)}\n`)
    } else if (jobs.length === 0) {
      process.stdout.write(`No lists in ${config.dataDir}. “ev bulk” makes one.\n`)
    } else {
      process.stdout.write(table(COLUMNS, standing.map(rowOf)))
    }
    return 0
  } finally {
    await database?.close()
  }
}

const COLUMNS: readonly Column[] = [
  { title: 'ID' },
  { title: 'STATE' },
  { title: 'ROWS', align: 'right' },
  { title: 'DONE', align: 'right' },
  { title: 'DELIVERABLE', align: 'right' },
  { title: 'RISKY', align: 'right' },
  { title: 'UNDELIVERABLE', align: 'right' },
  { title: 'UNKNOWN', align: 'right' },
  { title: 'CREATED' },
  { title: 'TYPE' },
  { title: 'LIST' },
]

const rowOf = ([job, standing]: readonly [Job, Standing]): string[] => [
  job.id,
  standing,
  `${job.total}`,
  `${progressOf(job)} %`,
  `${job.deliverable}`,
  `${job.risky}`,
  `${job.undeliverable}`,
  `${job.unknown}`,
  timeText(job.created_at),
  job.type,
  // Last, as its width is anybody's.
  placesOf(job).list,
]
