import type { Job } from '../../jobs/job-store.ts'
import { formatDuration, formatNumber, formatPercent, pluralize } from '../../platform/format.ts'
import type { WrittenFile } from './output.ts'

/** How a job ended, for people. */
export function summary(
  job: Job,
  doneNow: number,
  tookMs: number,
  files: readonly WrittenFile[],
): string {
  const share = (count: number) =>
    `${formatNumber(count).padStart(9)}  ${formatPercent(count, job.total)}`
  const rate = tookMs > 0 ? Math.round((doneNow * 1_000) / tookMs) : 0
  return [
    '',
    `  deliverable   ${share(job.deliverable)}`,
    `  risky         ${share(job.risky)}`,
    `  undeliverable ${share(job.undeliverable)}`,
    `  unknown       ${share(job.unknown)}`,
    '',
    `${pluralize(job.total, 'row')} in ${formatDuration(tookMs)} (${rate}/s)${whereTo(job, files)}`,
  ].join('\n')
}

/** The end of the sentence: `, written to out.csv.` */
function whereTo(job: Job, files: readonly WrittenFile[]): string {
  const [first] = files
  if (first === undefined) return '.'
  if (files.length > 1) {
    return `, written to\n${files.map(({ path, rows }) => `${formatNumber(rows).padStart(9)}  ${path}`).join('\n')}`
  }
  const place = first.path === '-' ? '' : ` to ${first.path}`
  if (rowsOf(files) === job.total) return place === '' ? '.' : `, written${place}.`
  return `, ${formatNumber(first.rows)} of them written${place}.`
}

const rowsOf = (files: readonly WrittenFile[]) => files.reduce((sum, { rows }) => sum + rows, 0)

/** The same, for programs. */
export function summaryObject(job: Job, output: string, files: readonly WrittenFile[]) {
  return {
    job_id: job.id,
    output,
    files,
    total: job.total,
    duplicates: job.duplicates,
    deliverable: job.deliverable,
    risky: job.risky,
    undeliverable: job.undeliverable,
    unknown: job.unknown,
    written: rowsOf(files),
  }
}
