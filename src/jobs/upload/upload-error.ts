import { formatMebibytes } from '../../platform/format.ts'

type UploadFaultKind = 'no-form' | 'malformed' | 'too-large' | 'not-stored' | 'cut-off'

/** A file could not be received or stored; `message` is a part of a sentence about it. */
export class UploadFault extends Error {
  override readonly name = 'UploadFault'
  readonly kind: UploadFaultKind

  constructor(kind: UploadFaultKind, message: string, cause?: unknown) {
    super(message, { cause })
    this.kind = kind
  }
}

export const malformed = (reason: string, cause?: unknown) =>
  new UploadFault('malformed', reason, cause)

export const notStored = (cause: unknown) =>
  new UploadFault('not-stored', 'it cannot be stored now', cause)

export const tooLarge = (bytesMax: number) =>
  new UploadFault('too-large', `more than ${formatMebibytes(bytesMax)}, the limit for a file`)
