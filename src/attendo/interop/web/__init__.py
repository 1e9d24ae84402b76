"""A web page that runs models in the browser, without a server."""
