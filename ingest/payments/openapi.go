package payments

import (
	_ "embed"
	"net/http"

	"github.com/labstack/echo/v4"
)

// OpenAPI is the description of the interface, OpenAPI 3.1 as JSON. A test holds it
// against the handlers.
//
//go:embed openapi.json
var OpenAPI []byte

// serveOpenAPI handles GET /openapi.json. It needs no token: it holds no secret.
func serveOpenAPI(c echo.Context) error {
	return c.Blob(http.StatusOK, "application/json", OpenAPI)
}
