/** Heading and alignment of a column. */
export type Column = { readonly title: string; readonly align?: 'left' | 'right' }

/** Formats rows under headings, each column as wide as its widest cell. */
export function table(columns: readonly Column[], rows: readonly (readonly string[])[]): string {
  const all = [columns.map(({ title }) => title), ...rows]
  const widths = columns.map((_, n) => Math.max(...all.map(row => row[n]?.length ?? 0)))
  const line = (row: readonly string[]) =>
    columns.map(({ align }, n) => padded(row[n] ?? '', widths[n] ?? 0, align)).join('  ')
  return all.map(row => `${line(row).trimEnd()}\n`).join('')
}

const padded = (text: string, width: number, align: Column['align'] = 'left') =>
  align === 'right' ? text.padStart(width) : text.padEnd(width)
