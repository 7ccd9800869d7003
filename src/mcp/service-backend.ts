import { EvApiError, type EvClient } from '../client/client.ts'
import type { Job, ResultRow, VerifyStep } from '../client/types.ts'
import { orOnAbort } from '../platform/abort.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'
import { type Backend, hasEnded, type ListRow, type ToolCall } from './backend.ts'
import { ROWS_DEFAULT } from './results.ts'

/** Verifies addresses with a service, by its HTTP API: with the rights and limits of the key. */
export function createServiceBackend(client: EvClient): Backend {
  const getList: Backend['getList'] = async (jobId, range, call) => {
    await waitForEnd(client, jobId, call)
    // The rows are read after the status: a finished list has all of them.
    const job = await client.jobs.get(jobId, { signal: call.signal })
    const query = client.jobs.rows(jobId, range, { signal: call.signal })
    const { items, has_more } = await query.page()
    return {
      job_id: jobId,
      status: job.status,
      total: job.total_emails,
      processed: job.processed_emails,
      classes: job.data.classes,
      waitingFor: (job.waiting_for ?? []).map(({ detail }) => detail),
      results: items.flatMap(row => toRow(row, job)),
      pending: items.filter(row => row.class === null).map(({ email }) => email),
      next_after: has_more ? (items.at(-1)?.row ?? range.after + range.limit) : null,
    }
  }
  return {
    async verify(email, { signal, waiting, onProgress }) {
      let done = 0
      const onStep = (step: VerifyStep) => {
        // A line of the SMTP session is the text of a mail server.
        if (step.step !== 'line') onProgress({ done: ++done, text: sanitizeText(step.text) })
      }
      try {
        // With steps, an invalid address is a result instead of an error.
        return await client.verify.single(email, { onStep, signal: waiting })
      } catch (error) {
        if (waiting.aborted && !signal.aborted) return null
        throw error
      }
    },
    async verifyList(emails, call) {
      const submitted = client.batch(emails)
      const accepted = await orOnAbort(submitted, call.signal, null)
      if (accepted === null) {
        // The list may exist all the same.
        void submitted.then(({ job_id }) => client.jobs.cancel(job_id)).catch(() => {})
        throw new EvError('interrupted', 'The service did not accept the list in time. Try again.')
      }
      const { job_id } = accepted
      try {
        return await getList(job_id, { after: 0, limit: ROWS_DEFAULT }, call)
      } catch (error) {
        if (!call.cancelled.aborted) throw new StartedListError(job_id, error)
        await client.jobs.cancel(job_id).catch(() => {})
        throw error
      }
    },
    getList,
    async cancelList(jobId, call) {
      try {
        await client.jobs.cancel(jobId, { signal: call.signal })
      } catch (error) {
        if (!(error instanceof EvApiError) || error.code !== 'job_not_cancellable') throw error
      }
      return getList(jobId, { after: 0, limit: ROWS_DEFAULT }, call)
    },
    close: async () => {},
  }
}

/** A list was started, but its state could not be read. */
export class StartedListError extends Error {
  override readonly name = 'StartedListError'
  readonly jobId: string

  constructor(jobId: string, cause: unknown) {
    super(errorMessage(cause), { cause })
    this.jobId = jobId
  }
}

/**
 * Waits until a job has ended or the call has waited long enough. One event stream instead of
 * repeated requests, because a plan may allow ten requests a minute.
 */
async function waitForEnd(client: EvClient, jobId: string, call: ToolCall): Promise<void> {
  const { signal, waiting, onProgress } = call
  try {
    for await (const progress of client.jobs.events(jobId, { signal: waiting })) {
      const [done, total] = [progress.processed_emails, progress.total_emails]
      onProgress({ done, total, text: `${done} of ${total} addresses are finished.` })
      if (hasEnded(progress)) return
    }
  } catch (error) {
    // The account may have too many streams, and a service that stops ends them.
    if (signal.aborted || (!waiting.aborted && isRefusal(error))) throw error
  }
}

/** Whether the job itself cannot be read, so that another request would be refused too. */
const isRefusal = (error: unknown) =>
  error instanceof EvApiError && error.status < 500 && error.status !== 429

function toRow(row: ResultRow, { sandbox }: Job): ListRow[] {
  const { class: klass, action, action_reason, reason, risk_level, confidence } = row
  if (klass === null || action === null || action_reason === null) return []
  if (reason === null || risk_level === null || confidence === null) return []
  const { email, did_you_mean } = row
  const decided = { class: klass, action, action_reason }
  const result = { email, ...decided, reason, risk_level, confidence, did_you_mean }
  return [{ row: row.row, ...result, ...(sandbox && { sandbox }) }]
}
