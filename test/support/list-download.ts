import { Readable } from 'node:stream'
import type { Download } from '../../src/outbound/download.ts'
import { DownloadFault } from '../../src/outbound/download-fault.ts'

/** Delivers as many addresses as the path of the URL says; two if it says nothing. */
export const fakeDownload: Download = ({ url }, use) => {
  const count = Number(/\/(\d+)\.csv$/.exec(url)?.[1] ?? 2)
  const rows = Array.from({ length: count }, (_, n) => `valid${n}@example.com\n`)
  return use(Readable.from([Buffer.from(`email\n${rows.join('')}`)]))
}

/** A download that fails. */
export const failingDownload =
  (kind: DownloadFault['kind'], message: string): Download =>
  () =>
    Promise.reject(new DownloadFault(kind, message))
