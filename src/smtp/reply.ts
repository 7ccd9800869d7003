/** One reply of a server (RFC 5321 §4.2), its lines joined, text cleaned of nothing yet. */
export type Reply = {
  readonly code: number
  /** Enhanced status code of RFC 3463, such as `5.1.1`; null where the server gave none. */
  readonly enhanced: string | null
  /** The text of all lines without codes, joined by `\n`; as sent, so foreign and unclean. */
  readonly text: string
}
