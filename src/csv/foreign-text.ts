/** A text format that is not a list. */
type ForeignText = {
  /** Matches the start of a file of this format. */
  readonly start: RegExp
  /** What it is, and what to do. */
  readonly message: string
}

const FORMATS: readonly ForeignText[] = [
  {
    // Some services export tables as HTML named .xls. A tag before a delimiter is a column name.
    start:
      /^<(?:!doctype\s+html\b|html\b|(?:head|body|table|thead|tbody|tr|t[dh]|div|meta|style|title)(?:\s[^<>@]*)?>(?! *[,;|\t]))/i,
    message:
      'The list is a web page (HTML), not CSV or a workbook. Use the URL or the export that returns the file itself, as CSV or .xlsx.',
  },
  {
    // Excel 2003 writes workbooks in XML, named .xls or .xml.
    start: /^<(?:\?xml\b|[\w:.-]+\s[^<>@]*\bxmlns\b)/i,
    message: 'The list is an XML file, which ev does not read. Save it as .xlsx or CSV.',
  },
  {
    start: /^\{\\rtf/,
    message:
      'The list is a rich text document (RTF), not plain text. Save it as plain text or CSV.',
  },
  {
    // RFC 6350
    start: /^begin:vcard\b/i,
    message:
      'The list is a file of contacts (vCard), which ev does not read. Export the contacts as CSV.',
  },
  {
    // RFC 2849
    start: /^(?:version:[ \t]*1\s+)?(?:#[^\n]*\n)*dn::?[ \t]/i,
    message: 'The list is an LDIF file, which ev does not read. Export its entries as CSV.',
  },
  {
    // A dump, perhaps after comments.
    start: /^(?:--[^\n]*\n+)*(?:(?:insert|replace) into|create table|drop table|set \w+ ?=)\s/i,
    message:
      'The list is an SQL script, which ev does not read. Export the result of a query as CSV.',
  },
  {
    // RFC 4155
    start: /^From \S+ +(?:mon|tue|wed|thu|fri|sat|sun) [a-z]{3} /i,
    message:
      'The list is an mbox file of messages, not of addresses. Save the addresses as CSV. Bounces are imported as feedback.',
  },
  {
    // RFC 5322, with a field that only transport adds: pasted recipients may have others.
    start:
      /^(?:[!-9;-~]+:[^\n]*\n(?:[ \t][^\n]*\n)*){0,40}?(?:received|return-path|delivered-to|message-id|mime-version):/i,
    message:
      'The list is a message, not a list of addresses. Save the addresses as CSV. Bounces are imported as feedback.',
  },
]

/** Characters that show the format. */
const START_LENGTH = 4_096

/** Returns what to do with a text that is in another format than that of a list; null for a list. */
export function findForeignText(text: string): string | null {
  const start = text.slice(0, START_LENGTH).trimStart()
  return FORMATS.find(format => format.start.test(start))?.message ?? null
}
