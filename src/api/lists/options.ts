import { DEFAULT_JOB_OPTIONS, type JobOptions } from '../../jobs/job-options.ts'
import { ApiError } from '../errors/api-error.ts'

/** What bulk, batch and file alike say of how a list is asked. */
export type ListOptionFields = {
  readonly check_smtp?: boolean | null | undefined
  readonly force_refresh?: boolean | null | undefined
  readonly webhook_url?: unknown
}

/** How a list is asked. Throws ApiError for a `webhook_url`: ignored, it would leave its caller waiting. */
export function readListOptions({
  check_smtp,
  force_refresh,
  webhook_url,
}: ListOptionFields): JobOptions {
  if (webhook_url !== undefined && webhook_url !== null && webhook_url !== '') {
    throw new ApiError(
      'invalid_request',
      'webhook_url is not taken with a list. Register the endpoint once with POST /v1/webhooks, for the event batch.completed.',
    )
  }
  return {
    checkSmtp: check_smtp ?? DEFAULT_JOB_OPTIONS.checkSmtp,
    forceRefresh: force_refresh ?? DEFAULT_JOB_OPTIONS.forceRefresh,
  }
}
