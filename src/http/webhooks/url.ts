import { cleanText } from '../../base/text.ts'
import { faultOfDestination } from '../../hook/destination.ts'
import { addressJudge } from '../../smtp/public-address.ts'
import { ApiError } from '../error/api-error.ts'
import type { Service } from '../service.ts'

/** Refuses a URL that events may not be sent to. */
export async function checkUrl({ resolver, settings }: Service, url: string): Promise<void> {
  const mayDial = addressJudge(settings.webhookAllowRanges)
  const fault = await faultOfDestination(url, { resolver, mayDial })
  if (fault === null) return
  throw new ApiError(
    'invalid_webhook_url',
    `"url" is “${cleanText(url, 100)}”, which cannot be used. ${fault}`,
  )
}
