import type { Context } from 'hono'
import { html } from 'hono/html'
import type { HtmlEscapedString } from 'hono/utils/html'

/** Escaped markup, created only by the `html` template tag. */
export type Html = HtmlEscapedString | Promise<HtmlEscapedString>

/** Empty markup. */
export const NOTHING: Html = html``

/** Whether htmx sent the request, which replaces a part of the page with the response. */
export const isHtmx = ({ req }: Context): boolean => req.header('HX-Request') === 'true'
