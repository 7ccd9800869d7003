// Markdown of docs/ and of the OpenAPI document as HTML.
import { Marked } from 'marked'

/** Returns the anchor of a heading, as GitHub derives it. */
export const anchorOf = heading =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')

/**
 * Creates a renderer. `resolve` returns the URL of a link, or null for a file that the service does
 * not serve, whose link becomes plain text. `findOperation` returns the URL of an operation that code
 * names, such as `GET /v1/jobs`. `shift` is added to the level of headings.
 */
export function createMarkdown({
  resolve = href => href,
  findOperation = () => undefined,
  shift = 0,
} = {}) {
  return new Marked({
    renderer: {
      heading({ tokens, depth, text }) {
        const level = depth + shift
        return `<h${level} id="${anchorOf(plain(text))}">${this.parser.parseInline(tokens)}</h${level}>\n`
      },
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens)
        const url = resolve(href)
        return url === null ? text : `<a href="${escapeText(url)}">${text}</a>`
      },
      codespan({ text }) {
        const code = `<code>${escapeText(text)}</code>`
        const url = findOperation(text)
        return url === undefined ? code : `<a href="${url}">${code}</a>`
      },
      image: () => '',
      code({ text }) {
        return `<div class="code"><pre data-copy><code>${escapeText(text)}</code></pre></div>\n`
      },
      table({ header, rows }) {
        const cells = (tag, row) =>
          `<tr>${row.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join('')}</tr>`
        return `<div class="scroll"><table><thead>${cells('th', header)}</thead><tbody>${rows.map(row => cells('td', row)).join('')}</tbody></table></div>\n`
      },
    },
  })
}

/** Returns a heading without the marks of links and code. */
export const plain = text => text.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', '')

export const escapeText = text =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')

/** Returns the text of HTML, for the search. */
export const textOf = html =>
  html
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
    .replaceAll(/\s+/g, ' ')
    .trim()
