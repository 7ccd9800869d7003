import { EvError } from '../platform/error.ts'
import { toFault } from './transport-error.ts'

/**
 * - `invalid_url`: the URL, or one that it redirects to, is not allowed;
 * - `not_public`: its host has an address that may not be dialed;
 * - `unreachable`: no complete response arrived;
 * - `denied`: the server or the bucket requires other credentials;
 * - `status`: the response has another status than 200;
 * - `too_large`: the file is larger than the limit.
 */
type DownloadFaultKind =
  | 'invalid_url'
  | 'not_public'
  | 'unreachable'
  | 'denied'
  | 'status'
  | 'too_large'

/** A file could not be downloaded. The message has no path, query or credentials of its URL. */
export class DownloadFault extends EvError {
  readonly kind: DownloadFaultKind

  constructor(kind: DownloadFaultKind, message: string, cause?: unknown) {
    super(kind === 'invalid_url' ? 'usage' : 'no_input', message, { cause })
    this.kind = kind
  }
}

export const invalidUrl = (fault: string) =>
  new DownloadFault('invalid_url', `The URL of the list is not allowed. ${fault}`)

/** Returns the fault of a request to a host; `sentence` says what happened. */
export const hostFault = (kind: DownloadFaultKind, host: string, sentence: string) =>
  new DownloadFault(kind, `The list cannot be fetched from ${host}. ${sentence}`)

/** Converts an error of a request to a host. */
export function toDownloadFault(error: unknown, host: string): DownloadFault {
  if (error instanceof DownloadFault) return error
  const { faultCode, message } = toFault(error, 'The server')
  return hostFault(faultCode === 'address_not_public' ? 'not_public' : 'unreachable', host, message)
}
