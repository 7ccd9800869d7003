import { cleanText } from '../../base/text.ts'
import { faultOfDestination } from '../../hook/destination.ts'
import { addressJudge } from '../../smtp/public-address.ts'
import { ApiError } from '../error/api-error.ts'
import type { Service } from '../service.ts'

/** Refuses a URL that events may not be sent to. */
export async function checkUrl({ resolver, settings }: Service, url: string): Promise<void> {
  const judge = (mayDial: (ip: string) => boolean) => faultOfDestination(url, { resolver, mayDial })
  const fault = await judge(addressJudge(settings.webhookAllowRanges))
  if (fault === null) return
  const isInside = (await judge(() => true)) === null
  throw new ApiError(
    'invalid_webhook_url',
    `"url" is “${cleanText(url, 100)}”, which cannot be used. ${fault}${isInside ? REMEDY : ''}`,
  )
}

const REMEDY =
  ' Events go to public addresses; whoever runs the service can allow others with --webhook-allow-ranges.'
