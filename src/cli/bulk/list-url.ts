import { composeResolver } from '../../compose/engine.ts'
import type { Config } from '../../config/settings.ts'
import { createDownload, getFileName } from '../../outbound/download.ts'
import { isS3Url, type S3Access } from '../../outbound/s3.ts'
import { EvError } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { CliContext } from '../context.ts'
import { type ListCopy, storeStream } from './list-file.ts'

/**
 * Whether a list is named by a URL; of which schemes, the download decides. `https:host/path`, with a
 * slash too few, is a URL too.
 */
export const isUrl = (list: string) =>
  isS3Url(list) || /^(?:https?:|[a-z][a-z\d+.-]*:\/\/)/i.test(list)

/** Returns the file name of the list at a URL, for messages and the default output. */
export const nameOfUrl = (url: string): string => sanitizeText(getFileName(url)) || 'list.csv'

/**
 * Downloads a list into the data directory, like a list from stdin, and returns the
 * copy. The URL is one of the user: private addresses and any size are allowed.
 */
export async function downloadList(
  context: CliContext,
  config: Config,
  url: string,
): Promise<ListCopy> {
  const { clock, externalDeps } = context
  const s3 = isS3Url(url) ? readS3Access(context.env) : undefined
  const { resolver, close } = composeResolver(config, externalDeps?.resolver, clock)
  const download = createDownload({ clock, resolver, mayDial: () => true })
  const request = { url, s3, bytesMax: Number.POSITIVE_INFINITY, totalMs: null }
  try {
    return await download(request, bytes => storeStream(nameOfUrl(url), bytes, config.dataDir))
  } finally {
    close()
  }
}

/** Reads the variables of the AWS CLI. As there, an empty one counts as not set. */
function readS3Access(env: CliContext['env']): S3Access {
  const accessKeyId = env.AWS_ACCESS_KEY_ID || undefined
  const secretAccessKey = env.AWS_SECRET_ACCESS_KEY || undefined
  if (accessKeyId === undefined || secretAccessKey === undefined) throw noCredentials()
  return {
    accessKeyId,
    secretAccessKey,
    sessionToken: env.AWS_SESSION_TOKEN || undefined,
    region: env.AWS_REGION || env.AWS_DEFAULT_REGION || DEFAULT_REGION,
    endpoint: env.AWS_ENDPOINT_URL_S3 || env.AWS_ENDPOINT_URL || undefined,
  }
}

/** The default of the AWS CLI for S3, and of MinIO. */
const DEFAULT_REGION = 'us-east-1'

const noCredentials = () =>
  new EvError(
    'usage',
    'A list in a bucket needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment. For a profile of the AWS CLI, run: eval "$(aws configure export-credentials --format env)"',
  )
