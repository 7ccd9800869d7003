import { formatNumber, pluralize } from '../platform/format.ts'
import { createErrors, type NoFacts } from '../platform/operation-error.ts'
import { formatPlan, sanitizeText } from '../platform/text.ts'

const ERRORS = {
  job_not_found: ({ id }: { readonly id: string }) => `Job ${sanitizeText(id)} does not exist.`,
  job_not_cancellable: ({ state }: StateFacts) => `The job is already ${state}.`,
  job_not_finishable: ({ state }: StateFacts) =>
    `The job has ${state === 'failed' ? 'failed' : 'been cancelled'}.`,
  /** In state `cancelled` or `failed`, another caller resumed the job first. */
  job_not_resumable: ({ state }: StateFacts) =>
    state === 'cancelled' || state === 'failed'
      ? 'The job was resumed by another request.'
      : `The job is ${state}. Only a cancelled or failed job can be resumed.`,
  job_not_reverifiable: ({ state }: StateFacts) =>
    `The job is ${state}. Only a list that is completed, cancelled or failed can be re-verified.`,
  /** A single verification or a list of the command line cannot be re-verified as a list. */
  job_not_list: (_: NoFacts) => 'The job is not a list of the service.',
  /** No row of a job matches the conditions of a new verification. */
  no_row_selected: (_: NoFacts) =>
    "No row of the list matches the conditions, so there is nothing to re-verify. Rows that aren't addresses are never re-verified.",
  job_in_use: ({ id }: { readonly id: string }) => `Another ev process is working on job ${id}.`,
  list_empty: (_: NoFacts) => 'The list has no rows.',
  concurrent_jobs_exceeded: ({ plan, openLists, max }: OpenListsFacts) =>
    `${pluralize(openLists, 'list')} of the account ${openLists === 1 ? 'is' : 'are'} not finished, and the ${formatPlan(plan)} allows ${formatNumber(max)} at a time.`,
  stored_rows_exceeded: ({ plan, storedRows, rows, isMore, max }: StoredRowsFacts) =>
    `The account stores ${pluralize(storedRows, 'row')} of lists, this list has ${isMore ? 'more than ' : ''}${formatNumber(rows)}, and the ${formatPlan(plan)} allows ${formatNumber(max)}.`,

  schedule_not_found: ({ id }: { readonly id: string }) =>
    `Schedule ${sanitizeText(id)} does not exist.`,
  schedule_limit_reached: ({ count }: { readonly count: number }) =>
    `The account has ${formatNumber(count)} schedules, which is the maximum.`,
  /** A schedule cannot be resumed, because the results to verify again were deleted. */
  schedule_without_results: (_: NoFacts) =>
    'The schedule cannot be resumed: the results of its list were deleted. Delete the schedule, and create one for another list.',
}

type StateFacts = { readonly id: string; readonly state: string }

type OpenListsFacts = { readonly plan: string; readonly openLists: number; readonly max: number }

type StoredRowsFacts = {
  readonly plan: string
  readonly storedRows: number
  /** Rows to add; with `isMore` at least that many. */
  readonly rows: number
  readonly isMore: boolean
  readonly max: number
}

type Errors = typeof ERRORS

declare module '../platform/operation-error.ts' {
  interface OperationErrors extends Errors {}
}

/** Creates the errors of jobs and schedules. */
export const jobError = createErrors(ERRORS)
